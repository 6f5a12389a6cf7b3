"""The settings from an environment: values, defaults, and one line about each wrong one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env
from delivery.incoming.rate_limit import bucket_of

Read = Callable[..., env.Environment]

WHOLE = [
    "SENDER_PROCESSES",
    "WEB_WORKERS",
    "WEB_THREADS",
    "INTURN_MAX_MESSAGE_BYTES",
    "INTURN_CALLBACK_DAYS",
]
WRONG = [
    ("PORT", "abc", "1 to 65535"),
    ("PORT", "70000", "1 to 65535"),
    ("PORT", "9" * 5000, "1 to 65535"),
    *(
        (name, text, "a whole number from 1 to")
        for name in WHOLE
        for text in ("0", "-3", "1.5", "many")
    ),
    ("INTURN_DEBUG", "maybe", "true or false"),
    ("INTURN_LOG_LEVEL", "LOUD", "DEBUG, INFO, WARNING"),
    ("INTURN_PUBLISH_RATE_LIMIT", "fast", "like 1000/s"),
    ("INTURN_ALLOWED_NETWORKS", "10.0.0.1/8", "CIDR ranges"),
    ("INTURN_ALLOWED_NETWORKS", "home", "CIDR ranges"),
    ("INTURN_ALLOWED_HOSTS", "https://broker.example.com", "without scheme and port"),
    ("INTURN_ALLOWED_HOSTS", "broker.example.com:443", "without scheme and port"),
    *(
        ("INTURN_LISTEN", text, "like 127.0.0.1")
        for text in ("localhost", "10.0.0.300", "[::", "fe80::1%eth0", "0.0.0.0:80")
    ),
    ("INTURN_BASE_URL", "broker.example.com", "like https://"),
    ("INTURN_BASE_URL", "ftp://broker.example.com", "like https://"),
    ("HISTORY_URL", "s3a://", "s3a://bucket/inturn"),
    ("HISTORY_URL", "s3a://my bucket/x", "s3a://bucket/inturn"),
    ("SPARK_MASTER", "spark.example.com", "spark://spark.example.com:7077"),
    ("SPARK_MASTER", "local[0]", "local[*]"),
    ("SPARK_REMOTE", "spark://spark.example.com", "sc://"),
    *(
        ("SPARK_DRIVER_MEMORY", text, "at least 512m")
        for text in ("1", "511m", "0g", "2 GB", "64k")
    ),
]
SECRETS = [
    "INTURN_SECRET_KEY",
    "INTURN_ENCRYPTION_KEYS",
    "INTURN_BOOTSTRAP_KEY",
    "INTURN_ADMIN_PASSWORD",
]
HIDDEN = "hunter2"
KEY = "0123456789abcdef01234567"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_given(**given: str) -> env.Environment:
        return env.read_environment({"INTURN_HOME": str(tmp_path / "home")} | given)

    return read_given


def complaint(read: Read, **given: str) -> str:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(**given)
    return str(refused.value)


@pytest.mark.parametrize(("name", "text", "allowed"), WRONG)
def test_a_wrong_value_is_named_and_quoted_with_the_remedy(
    read: Read, name: str, text: str, allowed: str
) -> None:
    reported = complaint(read, **{name: text})
    assert reported.startswith(f"{name}: ")
    assert text in reported
    assert allowed in reported
    assert "\n" not in reported


@pytest.mark.parametrize(
    "url",
    [
        HIDDEN,
        f"mysql://me:{HIDDEN}@host/name",
        f"postgresql://me:{HIDDEN}@host:port/name",
        f"postgresql://me:{HIDDEN}@host:70000/name",
        f"postgresql://me:{HIDDEN}/@host/name",
        f"postgresql://me:{HIDDEN}@host",
    ],
)
def test_a_url_that_is_no_databases_is_refused_without_its_password(read: Read, url: str) -> None:
    reported = complaint(read, DATABASE_URL=url)
    assert reported.startswith("DATABASE_URL: ")
    assert "postgresql://user:password@host:5432/name" in reported
    assert HIDDEN not in reported


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@host/name",
        "postgres://me:a%2Fb@[::1]:5433/name?sslmode=require",
        "postgresql://me@one:5432,two:5432/name",
    ],
)
def test_a_database_url_is_accepted_unchanged(read: Read, url: str) -> None:
    assert read(DATABASE_URL=url).database_url == url


@pytest.mark.parametrize("name", [*SECRETS, "DATABASE_URL", "PORT"])
def test_the_end_of_a_files_line_is_no_part_of_its_value(
    read: Read, tmp_path: Path, name: str
) -> None:
    fitting = {
        "DATABASE_URL": "postgresql://me@host/name",
        "PORT": "8123",
        "INTURN_BOOTSTRAP_KEY": KEY,
    }
    value = fitting.get(name, HIDDEN)
    (tmp_path / "given").write_text(f"{value}\n")
    assert read(**{f"{name}_FILE": str(tmp_path / "given")}) == read(**{name: value})


def test_a_file_is_preferred_unless_its_name_is_empty(read: Read, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("8123")
    assert read(PORT="8124", PORT_FILE=str(tmp_path / "given")).port == 8123
    assert read(PORT="8124", PORT_FILE="").port == 8124


def test_a_file_that_cannot_be_read_is_named(read: Read, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    missing, folder, bytes_ = str(tmp_path / "missing"), str(tmp_path), str(tmp_path / "bytes")
    assert complaint(read, PORT_FILE=missing) == (
        f"PORT_FILE: {missing} cannot be read (No such file or directory)"
    )
    assert "Is a directory" in complaint(read, INTURN_SECRET_KEY_FILE=folder)
    assert "UTF-8" in complaint(read, INTURN_SECRET_KEY_FILE=bytes_)


@pytest.mark.parametrize("name", [*SECRETS, "PORT"])
def test_a_blank_value_is_refused_and_an_empty_one_counts_as_unset(
    read: Read, tmp_path: Path, name: str
) -> None:
    (tmp_path / "blank").write_text("\n")
    assert read(**{name: ""}) == read()
    assert complaint(read, **{name: " "}).startswith(f"{name}: the value is blank")
    assert complaint(read, **{f"{name}_FILE": str(tmp_path / "blank")}).startswith(f"{name}_FILE: ")


def test_a_secret_that_looks_like_a_variable_is_not_expanded(read: Read) -> None:
    assert read(INTURN_ADMIN_PASSWORD="$HOME").admin_password == "$HOME"


@pytest.mark.parametrize("key", ["a", KEY[:-1], f"{KEY[:12]} {KEY[12:]}", f"{KEY}é"])
def test_a_bootstrap_key_that_is_guessable_or_unsendable_is_refused(read: Read, key: str) -> None:
    reported = complaint(read, INTURN_BOOTSTRAP_KEY=key)
    assert reported.startswith("INTURN_BOOTSTRAP_KEY: ")
    assert "openssl rand -hex 24" in reported
    assert KEY[:-1] not in reported
    assert read(INTURN_BOOTSTRAP_KEY=KEY).bootstrap_key == KEY


def test_a_missing_secret_is_generated_once(read: Read) -> None:
    first = read()
    assert len(first.secret_key) >= 50
    assert read() == first


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match=r"^INTURN_HOME: .* cannot be used"):
        env.read_environment({"INTURN_HOME": str(tmp_path / "file")})


def test_allowed_hosts_include_the_base_urls_and_this_machine(read: Read) -> None:
    local = {"127.0.0.1", "localhost", "[::1]"}
    assert set(read().allowed_hosts) == local
    assert set(read(INTURN_ALLOWED_HOSTS="a.example, b.example").allowed_hosts) == local | {
        "a.example",
        "b.example",
    }
    base = read(INTURN_BASE_URL="https://Broker.example.com:8443/")
    assert set(base.allowed_hosts) == local | {"broker.example.com"}
    assert base.base_url == "https://Broker.example.com:8443"
    assert "[2001:db8::1]" in read(INTURN_BASE_URL="http://[2001:db8::1]:80").allowed_hosts


@pytest.mark.parametrize("limit", ["1000/s", "1 / m", "999999999/h"])
def test_an_accepted_rate_is_one_that_publishing_understands(read: Read, limit: str) -> None:
    assert bucket_of(read(INTURN_PUBLISH_RATE_LIMIT=limit).publish_rate_limit) is not None


@pytest.mark.parametrize("limit", ["10", "ten/s", "0/s", "10/d", "-1/s", "1234567890/s"])
def test_a_rate_that_publishing_does_not_understand_is_refused(read: Read, limit: str) -> None:
    assert limit in complaint(read, INTURN_PUBLISH_RATE_LIMIT=limit)


@pytest.mark.parametrize(
    ("text", "flag"), [("true", True), ("1", True), ("On", True), ("no", False), ("0", False)]
)
def test_a_flag_has_several_spellings(read: Read, text: str, flag: bool) -> None:
    assert read(INTURN_DEBUG=text).debug is flag


@pytest.mark.parametrize(
    ("listen", "own_url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("[::]", "http://[::1]:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("10.1.2.3", "http://10.1.2.3:8000"),
        ("[2001:DB8::7]", "http://[2001:db8::7]:8000"),
    ],
)
def test_the_listen_address_is_an_allowed_host(read: Read, listen: str, own_url: str) -> None:
    environment = read(INTURN_LISTEN=listen)
    assert environment.own_url == environment.base_url == own_url
    assert own_url.removeprefix("http://").removesuffix(":8000") in environment.allowed_hosts
    named = read(INTURN_LISTEN=listen, INTURN_BASE_URL="https://broker.example.com")
    assert (named.own_url, named.base_url) == (own_url, "https://broker.example.com")
    assert own_url.removeprefix("http://").removesuffix(":8000") in named.allowed_hosts


def test_tls_files_make_every_own_address_https(read: Read) -> None:
    plain = read()
    assert (plain.tls, plain.log_to) == (None, "FILES")
    files = {"INTURN_TLS_CERTIFICATE": "/etc/c.pem", "INTURN_TLS_KEY": "/etc/k.pem"}
    encrypted = read(**files)
    assert (encrypted.own_url, encrypted.base_url) == (
        "https://127.0.0.1:8000",
        "https://127.0.0.1:8000",
    )
    assert "begin it with https://" in complaint(
        read, **files, INTURN_BASE_URL="http://broker.example.com"
    )


@pytest.mark.parametrize("given", ["INTURN_TLS_CERTIFICATE", "INTURN_TLS_KEY"])
def test_tls_needs_paths_of_both_files(read: Read, given: str) -> None:
    assert "set both, or none" in complaint(read, **{given: "/etc/one.pem"})
    reported = complaint(read, **{given: "-----BEGIN PRIVATE KEY-----"})
    assert "give its path" in reported
    assert "BEGIN" not in reported
