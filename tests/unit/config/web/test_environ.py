"""The environ of the bridge is the same as that of granian's own WSGI."""

import os
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from delivery.incoming.headers import UNREADABLE
from tests.unit.config.serving import Served, serving

REQUESTS = {
    "plain": b"GET / HTTP/1.1\r\nHost: test\r\n\r\n",
    "percent-encoded path": b"GET /a%20b/%C3%A9/%2F/%25?x=%C3%A9&y=a+b&x=2 HTTP/1.1\r\n"
    b"Host: test\r\n\r\n",
    "bytes in the query": b"GET /x?max=\xef\xbc\x91&y=%C3%A9 HTTP/1.1\r\nHost: test\r\n\r\n",
    "no query but a question mark": b"GET /a? HTTP/1.1\r\nHost: test\r\n\r\n",
    "repeated headers": b"GET / HTTP/1.1\r\nHost: test\r\nX-A: 1\r\nX-B: 0\r\nX-A: 2, 3\r\n"
    b"x-a: \r\n\r\n",
    "cookies": b"GET / HTTP/1.1\r\nHost: test\r\nCookie: a=1; b=2\r\nCookie: c=3\r\n\r\n",
    "filter string": b"GET / HTTP/1.1\r\nHost: test\r\nFILTER_STRING: of, two\r\n\r\n",
    "hyphenated filter string": b"GET / HTTP/1.1\r\nHost: test\r\nFilter-String: x\r\n\r\n",
    "header like a length": b"GET / HTTP/1.1\r\nHost: test\r\ncontent_length: 5\r\n"
    b"Content_Type: a/b\r\n\r\n",
    "tab and empty": b"GET / HTTP/1.1\r\nHost: test\r\nX-Tab: a\tb\r\nX-Empty:\r\n\r\n",
    "beyond ASCII": b"GET / HTTP/1.1\r\nHost: test\r\nX-Latin: caf\xe9\r\n"
    b"X-Utf: caf\xc3\xa9\r\nX-C: c\r\n\r\n",
    "forwarded": b"GET / HTTP/1.1\r\nHost: b.example:81\r\n"
    b"X-Forwarded-Proto: https\r\nX-Forwarded-For: ::1\r\n\r\n",
    "HTTP/1.0 without host": b"GET /x HTTP/1.0\r\n\r\n",
    "absolute address": b"GET http://other.example/x?y HTTP/1.1\r\n\r\n",
    "absolute address and host": b"GET http://other.example:80/x HTTP/1.1\r\nHost: test\r\n\r\n",
    "star": b"OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n",
    "method of its own": b"QUERY / HTTP/1.1\r\nHost: test\r\n\r\n",
    "body": b"POST /x HTTP/1.1\r\nHost: test\r\nContent-Type: a/b; c=d\r\n"
    b"Content-Length: 3\r\n\r\na\xff\x00",
    "two content types": b"POST /x HTTP/1.1\r\nHost: test\r\nContent-Type: a/b\r\n"
    b"Content-Type: c/d\r\nContent-Length: 0\r\n\r\n",
    "body of a GET": b"GET /x HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc",
    "body of a DELETE": b"DELETE /x HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc",
    "long body": b"POST /x HTTP/1.1\r\nHost: test\r\nContent-Length: 400000\r\n\r\n"
    + b"0123456789" * 40000,
    "expected": b"POST /x HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n"
    b"Content-Length: 3\r\n\r\nabc",
    "chunks of a GET": b"GET /x HTTP/1.1\r\nHost: test\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
}
# Keys that differ between any two requests.
IGNORED = {"PYTEST_CURRENT_TEST", "SERVER_PORT", UNREADABLE}


@pytest.fixture(scope="module")
def wsgi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving("echo", tmp_path_factory.mktemp("wsgi"), interface="wsgi") as served:
        yield served


def reported(served: Served, raw: bytes) -> dict[str, Any]:
    """Return the application's environ, without the names of the process's environment."""
    if b"Expect: 100" in raw:
        with served.connect() as connection:
            connection.sendall(raw)
            received = b""
            while not received.endswith(b"}"):
                received += connection.recv(65536)
        body = received.rpartition(b"\r\n\r\n")[2]
    else:
        _, body = served.ask(raw)
    environ: dict[str, Any] = orjson.loads(body)
    # WSGI adds the process's environment, which other tests may have changed.
    return {
        name: value
        for name, value in environ.items()
        if name not in IGNORED and name not in os.environ
    }


@pytest.mark.parametrize("name", REQUESTS)
def test_the_environ_is_that_of_wsgi(name: str, echoing: Served, wsgi: Served) -> None:
    expected = reported(wsgi, REQUESTS[name])
    if REQUESTS[name].startswith((b"POST", b"OPTIONS", b"QUERY")):
        # Without a length Django would treat a body as empty; no body has length 0.
        expected.setdefault("CONTENT_LENGTH", "0")
    assert reported(echoing, REQUESTS[name]) == expected


def test_port_and_client_address_are_in_the_environ(echoing: Served) -> None:
    environ = orjson.loads(echoing.get("/")[1])
    assert environ["SERVER_PORT"] == str(echoing.port)
    assert environ["REMOTE_ADDR"] == environ["SERVER_NAME"] == "127.0.0.1"


def test_the_environ_contains_no_process_environment(echoing: Served) -> None:
    assert "PATH" in os.environ
    assert "PATH" not in orjson.loads(echoing.get("/")[1])


def test_a_proxys_header_counts_and_not_a_strangers_like_it(echoing: Served) -> None:
    raw = b"GET / HTTP/1.1\r\nHost: test\r\n%b\r\n%b\r\n\r\n"
    pair = [b"X-Forwarded-Proto: http", b"X_Forwarded_Proto: https"]
    for order in (pair, pair[::-1]):
        assert reported(echoing, raw % tuple(order))["HTTP_X_FORWARDED_PROTO"] == "http"


def test_the_filter_string_is_that_of_this_very_name(echoing: Served) -> None:
    raw = b"GET / HTTP/1.1\r\nHost: test\r\n%b\r\n%b\r\n\r\n"
    pair = [b"FILTER_STRING: very", b"Filter-String: like it"]
    for order in (pair, pair[::-1]):
        assert reported(echoing, raw % tuple(order))["HTTP_FILTER_STRING"] == "very"


def test_a_path_that_is_not_utf_8_is_another_path(echoing: Served) -> None:
    raw = b"GET /%FF HTTP/1.1\r\nHost: test\r\n\r\n"
    assert reported(echoing, raw)["PATH_INFO"].encode("latin-1").decode() == "/\ufffd"


def test_a_header_whose_value_was_dropped_is_named(echoing: Served) -> None:
    raw = b"GET / HTTP/1.1\r\nHost: test\r\nX-Name: J\xc3\xbcrgen\r\nX-C: c\r\n\r\n"
    assert orjson.loads(echoing.ask(raw)[1])[UNREADABLE] == "x-name"
    assert UNREADABLE not in orjson.loads(echoing.get("/")[1])


def test_a_header_name_that_is_not_ascii_is_refused_by_the_web_server_itself(
    echoing: Served,
) -> None:
    response, body = echoing.ask(b"GET / HTTP/1.1\r\nHost: test\r\nX-\xc3\xa9: 1\r\n\r\n")
    assert (response.status, response.getheader("Content-Type"), body) == (400, None, b"")
