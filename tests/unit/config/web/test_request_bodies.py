"""Bodies are passed whole or not at all, and a slow one occupies no thread."""

import socket
from contextlib import ExitStack, suppress

import orjson
import pytest

from config.web import request_bodies
from tests.unit.config.applications import MAX_BODY_BYTES, THREADS
from tests.unit.config.serving import Served, answer

CHUNKED = b"POST /x HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = request_bodies.SHORT_BYTES + 1


def known(length: int) -> bytes:
    return f"POST /x HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n".encode()


def chunks(body: bytes, *, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def echoed(served: Served, raw: bytes) -> tuple[str, bytes]:
    """Return the length and the body that the application saw."""
    environ = orjson.loads(served.ask(raw)[1])
    return environ["CONTENT_LENGTH"], environ["body"].encode("latin-1")


def refusal(connection: socket.socket) -> tuple[int, str]:
    """Return the status and the code of an answer after which the server closes the connection."""
    response, body = answer(connection)
    assert response.getheader("Connection") == "close"
    with suppress(ConnectionError):
        assert connection.recv(1) == b""
    return response.status, orjson.loads(body)["type"].removeprefix("urn:inturn:problem:")


@pytest.mark.parametrize("size", [0, 1, 1000, LONG - 1, LONG, MAX_BODY_BYTES])
def test_a_body_in_chunks_gets_its_length(echoing: Served, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert echoed(echoing, CHUNKED + chunks(body, size=10_000)) == (str(size), body)


@pytest.mark.parametrize("size", [1, LONG - 1, LONG, MAX_BODY_BYTES])
def test_a_body_of_known_length_is_passed_on(echoing: Served, size: int) -> None:
    body = b"\x00\xff" * (size // 2) + b"x" * (size % 2)
    assert echoed(echoing, known(size) + body) == (str(size), body)


def test_a_body_in_chunks_that_is_too_long_is_refused_as_soon_as_that_shows(
    echoing: Served,
) -> None:
    with echoing.connect() as connection:
        connection.sendall(CHUNKED + chunks(b"x" * (MAX_BODY_BYTES + 100_000), size=50_000)[:-5])
        assert refusal(connection) == (413, "too-large")


def test_a_body_declared_too_long_is_not_read(echoing: Served) -> None:
    with echoing.connect() as connection:
        connection.sendall(known(MAX_BODY_BYTES + 1))
        assert refusal(connection) == (413, "too-large")


@pytest.mark.parametrize(
    "raw",
    [
        CHUNKED + b"5\r\nhalf \r\n",
        CHUNKED + b"5\r\nhal",
        CHUNKED + b"5\r\nhalf \r\nzz\r\n",
        known(10) + b"half ",
        known(LONG) + b"half " * 10_000,
    ],
    ids=["next chunk", "in a chunk", "no chunk", "short", "long"],
)
def test_an_interrupted_body_is_not_passed_on(answering: Served, raw: bytes) -> None:
    with answering.connect() as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"teapot" not in received
    assert received == b"" or b"broken-body" in received


def test_trailers_are_refused_for_they_look_like_a_body_that_broke_off(answering: Served) -> None:
    response, body = answering.ask(CHUNKED + b"5\r\nwhole\r\n0\r\nX-Trailer: 1\r\n\r\n")
    assert (response.status, orjson.loads(body)["type"]) == (400, "urn:inturn:problem:broken-body")


def test_a_client_that_expects_100_continue_gets_it(echoing: Served) -> None:
    with echoing.connect() as connection:
        connection.sendall(known(5).replace(b"Host", b"Expect: 100-continue\r\nHost"))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"12345")
        assert orjson.loads(answer(connection)[1])["body"] == "12345"


def test_slow_bodies_hold_no_thread(echoing: Served) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(echoing.connect()) for _ in range(3 * THREADS)]
        for number, connection in enumerate(slow):
            connection.sendall((known(10) if number % 2 else CHUNKED) + b"1")
        assert echoing.get("/")[0].status == 200


def test_a_connection_is_kept_for_the_next_request(echoing: Served) -> None:
    with echoing.connect() as connection:
        for raw in (
            known(5) + b"12345",
            CHUNKED + chunks(b"12345", size=2),
            known(LONG) + b"x" * LONG,
        ):
            connection.sendall(raw)
            environ = orjson.loads(answer(connection)[1])
            assert environ["CONTENT_LENGTH"] == str(len(environ["body"]))


def test_an_encoding_that_is_not_undone_is_refused(echoing: Served) -> None:
    with echoing.connect() as connection:
        connection.sendall(CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n")
        assert refusal(connection) == (501, "unknown-transfer-encoding")
