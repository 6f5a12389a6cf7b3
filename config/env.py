"""The settings, read from the environment: with unit, range and default.

A setting `NAME` may also be given as `NAME_FILE`, the path of a file with the value, because
containers receive secrets in files.
"""

import hmac
import ipaddress
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

from config.addresses import (
    Address,
    TlsFiles,
    listen_address,
    own_host,
    own_url,
    require_encryption_agrees,
    tls_files,
)
from config.embedded.postgres import running_url
from config.env_values import EnvReader, wrong_value
from config.retention_days import retention_days

# The folder of our packages: a checkout, or the packages of the environment with our wheel.
CHECKOUT = Path(__file__).resolve().parent.parent
IS_INSTALLED = not (CHECKOUT / "manage.py").exists()
# The folder of templates, static files and `manage.py`, which a wheel has inside of `config`.
ASSETS = CHECKOUT / "config" / "assets" if IS_INSTALLED else CHECKOUT
DEFAULT_HOME = "~/.local/share/inturn" if IS_INSTALLED else str(CHECKOUT / "var")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
LOG_TARGETS = ("FILES", "STDOUT")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
# A body is in memory several times during publishing; jsonb, which filters read, is limited to 256
# MiB.
LARGEST_MESSAGE_BYTES = 100 * 1024 * 1024

_HOST = r"[\w.-]+|\[[0-9a-fA-F:.]+\]"
_BASE_URL = re.compile(rf"https?://({_HOST})(:[0-9]{{1,5}})?(/[^\s?#]*)?")
_ALLOWED_HOST = re.compile(rf"{_HOST}|\*")
# A key is looked up by hash, without a limit of attempts, so it must be too long to be guessed.
_BOOTSTRAP_KEY = re.compile(r"[!-~]{24,}")
_RATE = re.compile(r"[1-9][0-9]{0,8} */ *[smh]")

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/]+\S*", re.IGNORECASE)
_PLACE = "an absolute folder like /srv/inturn/archive, or a URL like s3a://bucket/inturn"
_SPARK_MASTER = re.compile(r"local(\[(\*|[1-9][0-9]{0,3})\])?|spark://\S+|yarn|k8s://\S+")
_SPARK_REMOTE = re.compile(r"sc://\S+")
# Spark's minimum.
_MEMORY = re.compile(r"(51[2-9]|5[2-9][0-9]|[6-9][0-9]{2}|[1-9][0-9]{3,6})m|[1-9][0-9]{0,3}g")

_TRACES_URL = re.compile(r"https?://[^\s/]+\S*")
TRACING_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

# The kinds of encryption, with the usual ports.
_SMTP_PORTS = {"STARTTLS": 587, "TLS": 465, "NONE": 25}

# Not the beginning of a setting, which would let a document send a secret to an endpoint.
_REFERENCE_PREFIX = re.compile(r"(?!INTURN_|DATABASE_)[A-Z][A-Z0-9_]{6,}_")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """Without a `host` no mail is sent. `to` are the recipients of rules without recipients."""

    host: str
    port: int
    security: str
    user: str
    password: str = field(repr=False)
    sender: str
    to: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSettings:
    """Where a command looks up the references of a configuration document.

    `env:NAME` is a variable with the prefix, `file:PATH` is below the folder; None: no file.
    """

    prefix: str
    folder: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The settings of this process, read once by `read_environment`."""

    home: Path
    listen: Address
    port: int
    tls: TlsFiles | None
    base_url: str
    allowed_hosts: list[str]
    debug: bool
    database_url: str
    secret_key: str
    encryption_keys: list[str]
    bootstrap_key: str
    admin_password: str
    fetch_key: str
    allowed_networks: tuple[Network, ...]
    sender_processes: int
    queue_senders: int
    max_message_bytes: int
    publish_rate_limit: str
    callback_days: int
    mailbox_days: int
    retention_days: Mapping[str, int | None]
    retention_unarchived: bool
    history_url: str
    history_whole_days: int
    spark_master: str
    spark_remote: str
    spark_driver_memory: str
    spark_nice: int
    spark_java_options: tuple[str, ...]
    web_workers: int
    web_threads: int
    log_level: str
    log_to: str
    traces_url: str
    mail: MailSettings
    references: ReferenceSettings

    @property
    def cookie_prefix(self) -> str:
        """Return the beginning of the names of this installation's cookies.

        Browsers send cookies to every port of a host, so two installations on the same host would
        otherwise end each other's sessions. The prefix follows from the secret key: all machines of
        an installation share it, whatever address they are reached at. Nobody learns the key by it.
        """
        digest = hmac.digest(self.secret_key.encode(), b"inturn.cookies", "sha256")
        return f"inturn_{digest.hex()[:8]}_"

    @property
    def own_url(self) -> str:
        """Return the address at which this machine reaches the web server."""
        return own_url(self.listen, self.port, tls=self.tls)


def read_environment(environment: Mapping[str, str] = os.environ) -> Environment:
    """Read all settings; raises ImproperlyConfigured with the name of a wrong setting."""
    return read_settings(EnvReader(environment))


def read_settings(reader: EnvReader) -> Environment:
    """Read all settings by this reader, which records where each of them came from."""
    home = Path(reader.text("INTURN_HOME", default=DEFAULT_HOME)).expanduser().resolve()
    port = reader.integer("PORT", default=8000, least=1, most=65535)
    listen = listen_address(reader.text("INTURN_LISTEN", default="127.0.0.1"))
    tls = tls_files(reader.text("INTURN_TLS_CERTIFICATE"), reader.text("INTURN_TLS_KEY"))
    base_url = _base_url(reader, default=own_url(listen, port, tls=tls))
    require_encryption_agrees(base_url, tls)
    return Environment(
        home=home,
        listen=listen,
        port=port,
        tls=tls,
        base_url=base_url,
        allowed_hosts=_allowed_hosts(reader, base_url, own_host(listen)),
        debug=reader.flag("INTURN_DEBUG", default=False),
        database_url=_database_url(reader) or running_url(home) or "",
        secret_key=reader.text("INTURN_SECRET_KEY") or kept_secret(home / "secret-key"),
        encryption_keys=(
            reader.text("INTURN_ENCRYPTION_KEYS") or kept_secret(home / "encryption-keys")
        ).split(),
        bootstrap_key=_bootstrap_key(reader),
        admin_password=reader.text("INTURN_ADMIN_PASSWORD"),
        fetch_key=reader.text("INTURN_FETCH_KEY"),
        allowed_networks=_allowed_networks(reader),
        sender_processes=reader.integer("SENDER_PROCESSES", default=2, least=1, most=100),
        queue_senders=reader.integer("QUEUE_SENDERS", default=5, least=1, most=100),
        max_message_bytes=reader.integer(
            "INTURN_MAX_MESSAGE_BYTES", default=1024 * 1024, least=1, most=LARGEST_MESSAGE_BYTES
        ),
        publish_rate_limit=reader.matching(
            "INTURN_PUBLISH_RATE_LIMIT", pattern=_RATE, allowed="like 1000/s, 500/m or 100/h"
        ),
        callback_days=reader.integer("INTURN_CALLBACK_DAYS", default=4, least=1, most=366),
        mailbox_days=reader.integer("INTURN_MAILBOX_DAYS", default=4, least=1, most=31),
        retention_days=retention_days(reader.items("INTURN_RETENTION_DAYS")),
        retention_unarchived=reader.flag("INTURN_RETENTION_UNARCHIVED", default=False),
        history_url=_history_url(reader, home),
        history_whole_days=reader.integer("HISTORY_WHOLE_DAYS", default=7, least=0, most=90),
        spark_master=_spark_master(reader),
        spark_remote=_spark_remote(reader),
        spark_driver_memory=_spark_driver_memory(reader),
        spark_nice=reader.integer("SPARK_NICE", default=10, least=0, most=19),
        spark_java_options=tuple(reader.text("SPARK_JAVA_OPTIONS").split()),
        web_workers=reader.integer("WEB_WORKERS", default=1, least=1, most=100),
        web_threads=reader.integer("WEB_THREADS", default=8, least=1, most=1000),
        log_level=reader.choice("INTURN_LOG_LEVEL", default="INFO", choices=LOG_LEVELS),
        log_to=reader.choice("INTURN_LOG_TO", default="FILES", choices=LOG_TARGETS),
        traces_url=_traces_url(reader),
        mail=_mail(reader, base_url),
        references=_references(reader),
    )


def _references(reader: EnvReader) -> ReferenceSettings:
    prefix = reader.matching(
        "INTURN_REFERENCE_PREFIX",
        pattern=_REFERENCE_PREFIX,
        allowed="at least eight capitals, digits and underscores, with an underscore at the end, "
        "and not INTURN_ at the beginning",
        default="CONFIGURATION_SECRET_",
    )
    folder = reader.text("INTURN_REFERENCE_FOLDER")
    if folder and not Path(folder).is_absolute():
        raise wrong_value("INTURN_REFERENCE_FOLDER", folder, allowed="an absolute path")
    return ReferenceSettings(prefix=prefix, folder=Path(folder) if folder else None)


def _base_url(reader: EnvReader, *, default: str) -> str:
    return reader.matching(
        "INTURN_BASE_URL",
        pattern=_BASE_URL,
        allowed="an address like https://broker.example.com or http://127.0.0.1:8000",
        default=default,
    ).rstrip("/")


def _mail(reader: EnvReader, base_url: str) -> MailSettings:
    security = reader.choice("INTURN_SMTP_SECURITY", default="STARTTLS", choices=tuple(_SMTP_PORTS))
    base = _BASE_URL.fullmatch(base_url)
    assert base is not None
    sender = reader.text("INTURN_MAIL_FROM", default=f"inturn@{base[1]}")
    return MailSettings(
        host=reader.text("INTURN_SMTP_HOST"),
        port=reader.integer("INTURN_SMTP_PORT", default=_SMTP_PORTS[security], least=1, most=65535),
        security=security,
        user=reader.text("INTURN_SMTP_USER"),
        password=reader.text("INTURN_SMTP_PASSWORD"),
        sender=_mail_address("INTURN_MAIL_FROM", sender),
        to=[_mail_address("INTURN_MAIL_TO", address) for address in reader.items("INTURN_MAIL_TO")],
    )


def _mail_address(name: str, address: str) -> str:
    before, at, host = address.rpartition("@")
    if not (before and at and host) or any(character.isspace() for character in address):
        raise wrong_value(name, address, allowed="an address like support@example.com")
    return address


def _traces_url(reader: EnvReader) -> str:
    """Return the URL of the collector, empty for no traces."""
    url = reader.matching(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        pattern=_TRACES_URL,
        allowed="a URL like http://collector.example.com:4318",
    )
    if url and not _can_trace():
        raise ImproperlyConfigured(
            "OTEL_EXPORTER_OTLP_ENDPOINT: traces need the packages of the extra `otel`: install "
            "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http, or unset it"
        )
    return url


def _can_trace() -> bool:
    try:
        return all(find_spec(name) is not None for name in TRACING_PACKAGES)
    except ModuleNotFoundError:  # Of a parent.
        return False


def _allowed_hosts(reader: EnvReader, base_url: str, own_host: str) -> list[str]:
    """Return the hosts given, the base URL's, and this machine's own, which `up` and probes use."""
    hosts = reader.items("INTURN_ALLOWED_HOSTS")
    for host in hosts:
        if not _ALLOWED_HOST.fullmatch(host):
            raise wrong_value(
                "INTURN_ALLOWED_HOSTS", host, allowed="a host name; give it without scheme and port"
            )
    base = _BASE_URL.fullmatch(base_url)
    assert base is not None
    return list(dict.fromkeys([*hosts, base[1].lower(), own_host, *LOCAL_HOSTS]))


def _bootstrap_key(reader: EnvReader) -> str:
    key = reader.text("INTURN_BOOTSTRAP_KEY")
    if key and not _BOOTSTRAP_KEY.fullmatch(key):
        # Without the value, which is a secret.
        raise ImproperlyConfigured(
            "INTURN_BOOTSTRAP_KEY: the value is too short, or not of ASCII letters, digits and "
            "signs without spaces; give at least 24 of them, such as `openssl rand -hex 24` prints"
        )
    return key


def _allowed_networks(reader: EnvReader) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(item) for item in reader.items("INTURN_ALLOWED_NETWORKS"))
    except ValueError as error:
        raise ImproperlyConfigured(
            f"INTURN_ALLOWED_NETWORKS: {error}; give CIDR ranges, e.g. 10.1.0.0/16,127.0.0.0/8"
        ) from error


def _database_url(reader: EnvReader) -> str:
    url = reader.text("DATABASE_URL")
    if url and not _names_a_database(url):
        # Without the value, which has a password.
        raise ImproperlyConfigured(
            "DATABASE_URL: the value is not like postgresql://user:password@host:5432/name; "
            "in a password, write other characters than letters and digits as %XX"
        )
    return url


def _history_url(reader: EnvReader, home: Path) -> str:
    """Return the place of the archive: an absolute folder, or a URL to which Spark writes."""
    text = reader.text("HISTORY_URL", default=str(home / "archive"))
    if "://" not in text:
        folder = Path(text).expanduser()
        if not folder.is_absolute():
            # Each process would have a separate archive, by the folder in which it was started.
            raise wrong_value("HISTORY_URL", text, allowed=_PLACE)
        return str(folder.resolve())
    if not _URL.fullmatch(text):
        raise wrong_value("HISTORY_URL", text, allowed=_PLACE)
    return text.rstrip("/")


def _spark_driver_memory(reader: EnvReader) -> str:
    return reader.matching(
        "SPARK_DRIVER_MEMORY",
        pattern=_MEMORY,
        allowed="like 512m or 2g, at least 512m",
        default="1g",
    )


def _spark_remote(reader: EnvReader) -> str:
    return reader.matching(
        "SPARK_REMOTE", pattern=_SPARK_REMOTE, allowed="like sc://spark.example.com:15002"
    )


def _spark_master(reader: EnvReader) -> str:
    master = reader.matching(
        "SPARK_MASTER",
        pattern=_SPARK_MASTER,
        allowed="like local[*], local[4], spark://spark.example.com:7077 or yarn",
    )
    if master and reader.text("SPARK_REMOTE"):
        raise ImproperlyConfigured(
            "SPARK_MASTER and SPARK_REMOTE are both given, "
            "and Spark can run in one place only: unset one of them"
        )
    return master or "local[*]"


def _names_a_database(url: str) -> bool:
    try:
        return url.startswith(("postgresql://", "postgres://")) and bool(
            environ.Env.db_url_config(url)["NAME"]
        )
    except ValueError:  # Of the port.
        return False


def kept_secret(path: Path) -> str:
    """Return a secret stored in the home, created on first use.

    Machines with a shared database must share their secrets, so there the settings supply them.
    """
    try:
        return path.read_text().strip() if path.exists() else _make_secret(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"INTURN_HOME: {path} cannot be used ({error.strerror})"
        ) from error


def _make_secret(path: Path) -> str:
    # Written to a draft and linked, so that two processes starting at once read the same finished
    # file.
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    with draft.open("w") as file:
        file.write(secrets.token_urlsafe(48))
        file.flush()
        # Synced, because after a power failure data encrypted with a lost secret would be
        # unreadable.
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
