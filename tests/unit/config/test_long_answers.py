"""A long answer is produced as fast as its client reads it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import orjson
import pytest

from config.web.long_answers import MOST_AT_ONCE, MOST_OF_SENDER
from tests.system.operation.installation import eventually
from tests.unit.config.applications import BLOCK, THREADS
from tests.unit.config.serving import SECONDS, Served, answer, serving

ENDLESS = b"GET /endless HTTP/1.1\r\nHost: test\r\n"
# The sockets' buffers of both sides, granian's and the pipe.
MOST_UNREAD = 16 * 1024 * 1024


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Served]:
    with serving("bridged_answers", tmp_path) as served:
        yield served


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Served]:
    """A server that closes a connection half a second after its client took the last byte."""
    with serving("bridged_impatient", tmp_path) as served:
        yield served


def count(served: Served, path: str) -> int:
    return int(served.get(path)[1])


def produced(served: Served) -> int:
    return count(served, "/produced") * len(BLOCK)


def begin(stack: ExitStack, served: Served, *lines: bytes) -> socket.socket:
    """Request an endless answer, and read none of it but its beginning."""
    connection = stack.enter_context(served.connect())
    connection.sendall(ENDLESS + b"".join(line + b"\r\n" for line in lines) + b"\r\n")
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def test_a_client_that_reads_nothing_stops_the_production(answering: Served) -> None:
    with ExitStack() as stack:
        begin(stack, answering)
        amounts = [-1]

        def is_stopped() -> bool:
            amounts.append(produced(answering))
            return amounts[-1] == amounts[-2]

        eventually(is_stopped, "nothing more is produced")
        assert 0 < amounts[-1] < MOST_UNREAD
        for _ in range(100):
            assert answering.get("/")[0].status == 418
        assert produced(answering) < MOST_UNREAD


def test_a_client_that_reads_again_gets_the_rest(answering: Served) -> None:
    with answering.connect() as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
        assert answering.get("/")[0].status == 418
        assert answer(connection)[1] == BLOCK * 1000


def test_clients_that_do_not_read_hold_no_thread_of_others(answering: Served) -> None:
    with ExitStack() as stack:
        for number in range(3 * THREADS):
            begin(stack, answering, b"Authorization: %d" % number)
        assert answering.get("/")[0].status == 418


def test_a_sender_has_few_long_answers_at_once(answering: Served) -> None:
    def ask(name: bytes) -> tuple[int, str]:
        response, body = answering.ask(ENDLESS + b"Authorization: " + name + b"\r\n\r\n")
        assert response.getheader("Retry-After") == "5"
        return response.status, orjson.loads(body)["type"].rpartition(":")[2]

    before = count(answering, "/closed")
    with ExitStack() as stack:
        for _ in range(MOST_OF_SENDER):
            begin(stack, answering, b"Authorization: greedy")
        assert ask(b"greedy") == (429, "too-many-downloads")
        for number in range(MOST_AT_ONCE - MOST_OF_SENDER):
            begin(stack, answering, b"Authorization: %d" % number)
        assert ask(b"other") == (503, "too-many-downloads")
    eventually(
        lambda: count(answering, "/closed") >= before + MOST_AT_ONCE + 2, "all of them are closed"
    )
    with ExitStack() as stack:
        begin(stack, answering, b"Authorization: greedy")


def test_a_client_that_takes_nothing_is_disconnected(impatient: Served) -> None:
    before = count(impatient, "/closed")
    with ExitStack() as stack:
        connection = begin(stack, impatient)
        eventually(lambda: count(impatient, "/closed") == before + 1, "the production has ended")
        assert not rest_of(connection).endswith(b"\r\n0\r\n\r\n")


def rest_of(connection: socket.socket) -> bytes:
    """Return all that comes until the connection is closed."""
    connection.settimeout(SECONDS)
    got = bytearray()
    with suppress(ConnectionError):
        while piece := connection.recv(1_000_000):
            got += piece
    return bytes(got)


def test_an_answer_that_fails_in_the_middle_does_not_look_complete(answering: Served) -> None:
    with answering.connect() as connection:
        connection.sendall(b"GET /breaks-late HTTP/1.1\r\nHost: test\r\n\r\n")
        got = rest_of(connection)
    assert got
    assert not got.endswith(b"\r\n0\r\n\r\n")
    eventually(lambda: "in the middle" in answering.log.read_text(), "the error is in the log")
    assert answering.get("/")[0].status == 418


def test_a_server_stops_although_clients_read_nothing(answering: Served) -> None:
    with ExitStack() as stack:
        begin(stack, answering)
        assert answering.stop() == 0
        assert "refused to gracefully stop" not in answering.log.read_text()
