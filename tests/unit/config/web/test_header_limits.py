"""A request's address and headers are limited before anything parses them."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from django.conf import settings
from django.test import Client

from config.up.child import HEAD_BYTES
from config.web.cookies import own_cookies
from config.web.header_limits import (
    MAX_ADDRESS_BYTES,
    MAX_MEDIA_TYPE_BYTES,
    MAX_PARSED_BYTES,
    MAX_TOTAL_BYTES,
    PARSED,
    check_head,
)
from delivery.incoming.headers import MAX_HEADER_BYTES
from tests.unit.config.serving import Served, serving
from tests.unit.config.web.test_request_bodies import CHUNKED, refusal

# What is worst for the parsers of headers: quotes, escapes, separators, digits.
NASTY = ['"' + '\\"' * 5000, "a;" * 9000, "a,b;c=d," * 2000, '";' * 9000, ";" * 9000, "1" * 9000]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the buffer that `up` gives it."""
    options = ("--http1-buffer-size", str(HEAD_BYTES))
    with serving("bridged_echo", tmp_path_factory.mktemp("limited"), *options) as served:
        yield served


def get(*lines: str, target: str = "/x") -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: test", *lines, "", ""]).encode()


def refused(served: Served, raw: bytes) -> tuple[int, str, str]:
    response, body = served.ask(raw)
    assert response.getheader("Connection") == "close"
    problem = orjson.loads(body)
    return response.status, problem["type"].rpartition(":")[2], problem["detail"]


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("Authorization", MAX_PARSED_BYTES),
        ("X-Forwarded-For", MAX_PARSED_BYTES),
        ("Content-Type", MAX_MEDIA_TYPE_BYTES),
        ("Accept", MAX_MEDIA_TYPE_BYTES),
    ],
)
def test_a_header_that_is_parsed_is_limited(limited: Served, name: str, most: int) -> None:
    assert limited.ask(get(f"{name}: {'x' * most}"))[0].status == 200
    status, code, detail = refused(limited, get(f"{name}: {'x' * (most + 1)}"))
    assert (status, code) == (431, "headers-too-large")
    assert detail == (
        f"The header {name} has at most {most} bytes; this one {most + 1}. "
        "Shorten them, or put the rest into the body."
    )


def test_foreign_cookies_do_not_count_among_those_that_are_parsed(tmp_path: Path) -> None:
    """A load balancer's or single sign-on's cookies on a shared domain are no fault of the user."""
    own = f"inturn_a={'x' * (MAX_PARSED_BYTES - len('inturn_a='))}"
    foreign = f"AWSALB={'y' * 20_000}; _oauth2_proxy={'z' * 3_000}"
    options = ("--http1-buffer-size", str(HEAD_BYTES))
    with serving("bridged_prefixed", tmp_path, *options) as served:
        passed_on = orjson.loads(served.ask(get(f"Cookie: {own}; {foreign}"))[1])
        assert passed_on["HTTP_COOKIE"] == own
        separate = orjson.loads(served.ask(get(f"Cookie: {foreign}", f"Cookie: {own}"))[1])
        assert separate["HTTP_COOKIE"] == own
        status, code, detail = refused(served, get(f"Cookie: {foreign}; {own}x"))
        assert (status, code) == (431, "headers-too-large")
        assert detail == (
            f"Inturn's own cookies have at most {MAX_PARSED_BYTES} bytes; these "
            f"{MAX_PARSED_BYTES + 2}. Delete the cookies of this site."
        )
        assert refused(served, get(f"Cookie: a={'y' * MAX_HEADER_BYTES}"))[0] == 431


def test_cookies_are_limited_together(limited: Served) -> None:
    lines = [f"Cookie: {'x' * 3000}"] * 3
    assert refused(limited, get(*lines))[0] == 431


def test_a_header_of_a_message_may_be_as_long_as_it_may_be_stored(limited: Served) -> None:
    environ = orjson.loads(limited.ask(get(f"X-A: {'x' * MAX_HEADER_BYTES}"))[1])
    assert len(environ["HTTP_X_A"]) == MAX_HEADER_BYTES
    assert refused(limited, get(f"X-A: {'x' * (MAX_HEADER_BYTES + 1)}"))[0] == 431


def test_all_headers_together_are_limited(limited: Served) -> None:
    lines = [f"X-{number}: {'x' * 6000}" for number in range(MAX_TOTAL_BYTES // 6000)]
    assert limited.ask(get(*lines))[0].status == 200
    assert refused(limited, get(*lines, f"X-Last: {'x' * 6000}"))[0] == 431


def test_an_address_is_limited(limited: Served) -> None:
    query = "a=1&" * (MAX_ADDRESS_BYTES // 4)
    assert limited.ask(get(target=f"/?{query[:-1]}"))[0].status == 200
    assert refused(limited, get(target=f"/?{query}aaaa"))[:2] == (414, "address-too-long")
    assert refused(limited, get(target=f"/{'a/' * 20_000}"))[0] == 414


@pytest.mark.parametrize(
    "raw",
    [
        get(f"X-A: {'x' * 2 * HEAD_BYTES}"),
        get(f"X-{'a' * 2 * HEAD_BYTES}: x"),
        get(*(f"X-{number}: 1" for number in range(200))),
    ],
)
def test_the_web_server_itself_refuses_more(limited: Served, raw: bytes) -> None:
    assert limited.ask(raw)[0].status == 431


def test_a_body_is_not_waited_for(limited: Served) -> None:
    with limited.connect() as connection:
        connection.sendall(CHUNKED.replace(b"Host", b"Cookie: " + b"x" * 9000 + b"\r\nHost"))
        assert refusal(connection) == (431, "headers-too-large")


def test_only_cookies_of_this_installation_are_passed_on_and_none_that_is_quoted() -> None:
    header = 'a=1; inturn_1_session=abc;inturn_2_session=def; inturn_1_x="\\""; inturn_1_csrf=g'
    assert own_cookies(header, prefix="inturn_1_") == " inturn_1_session=abc; inturn_1_csrf=g"


def test_two_installations_have_different_cookies_and_two_machines_of_one_the_same() -> None:
    here = settings.ENVIRONMENT
    assert replace(here, port=1, base_url="https://a.example").cookie_prefix == here.cookie_prefix
    assert replace(here, secret_key="other").cookie_prefix != here.cookie_prefix
    assert here.secret_key not in here.cookie_prefix
    for name in (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME):
        assert name.startswith(here.cookie_prefix)


def seconds_of(path: str, key: str, value: str) -> float:
    """Return the processor time of a request whose header passes the limits."""
    environ = {"PATH_INFO": path, "QUERY_STRING": "", key: value}
    check_head(environ, cookie_prefix=settings.COOKIE_PREFIX)
    client = Client()
    client.defaults.update(environ)
    began_at = time.process_time()
    client.get(path)
    return time.process_time() - began_at


@pytest.mark.django_db
@pytest.mark.parametrize("key", sorted(PARSED - {"CONTENT_LENGTH"} | {"HTTP_COOKIE"}))
@pytest.mark.parametrize("path", ["/admin/login/", "/api/v1/messages"])
def test_the_longest_header_costs_about_what_a_plain_request_costs(path: str, key: str) -> None:
    """The ratio is generous: unlimited cookies and types cost a thousand times as much."""
    plain = max(min(seconds_of(path, "HTTP_X_A", "") for _ in range(3)), 0.001)
    most = MAX_MEDIA_TYPE_BYTES if key in ("CONTENT_TYPE", "HTTP_ACCEPT") else MAX_PARSED_BYTES
    for nasty in NASTY:
        value = nasty[:most]
        if key == "HTTP_COOKIE":
            value = f"{settings.COOKIE_PREFIX}session={nasty}"[:MAX_PARSED_BYTES]
        costly = min(seconds_of(path, key, value) for _ in range(2))
        print(f"{path} {key} {value[:6]!r} {costly * 1000:.1f} ms, plain {plain * 1000:.1f} ms")
        assert costly < 40 * plain
