"""A long answer is produced as fast as its client reads it."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from http.client import HTTPResponse
from pathlib import Path

import orjson
import pytest

from config.web import long_answers
from config.web.answers import Head, Header
from config.web.long_answers import (
    MOST_ANONYMOUS,
    MOST_AT_ONCE,
    MOST_OF_REQUESTER,
    PIPE_BYTES,
    LongAnswer,
    LongAnswers,
)
from config.web.request_bodies import Requester
from tests.system.operation.installation import eventually
from tests.unit.config.applications import BLOCK, LARGE_PIPES, THREADS
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


def wait_until_nothing_is_produced(served: Served) -> None:
    amounts = [-1]

    def is_stopped() -> bool:
        amounts.append(produced(served))
        return amounts[-1] == amounts[-2]

    eventually(is_stopped, "nothing more is produced")


def begin(stack: ExitStack, served: Served, *lines: bytes) -> socket.socket:
    """Request an endless answer, and read none of it but its beginning."""
    connection = stack.enter_context(served.connect())
    connection.sendall(ENDLESS + b"".join(line + b"\r\n" for line in lines) + b"\r\n")
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def test_a_client_that_reads_nothing_stops_the_production(answering: Served) -> None:
    with ExitStack() as stack:
        begin(stack, answering)
        wait_until_nothing_is_produced(answering)
        assert 0 < produced(answering) < MOST_UNREAD
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


def refused(served: Served, name: bytes = b"", origin: bytes = b"") -> tuple[int, str]:
    lines = b"Authorization: %s\r\nX-Forwarded-For: %s\r\n\r\n" % (name, origin)
    with served.connect() as connection:
        connection.sendall(ENDLESS + lines)
        with HTTPResponse(connection) as response:
            response.begin()
            assert response.getheader("Retry-After") == "5"
            return response.status, orjson.loads(response.read())["type"].rpartition(":")[2]


def test_a_requester_has_few_long_answers_at_once(answering: Served) -> None:
    before = count(answering, "/closed")
    with ExitStack() as stack:
        for _ in range(MOST_OF_REQUESTER):
            begin(stack, answering, b"Authorization: greedy")
        assert refused(answering, b"greedy") == (429, "too-many-downloads")
        for number in range(MOST_AT_ONCE - MOST_OF_REQUESTER):
            begin(stack, answering, b"Authorization: %d" % number)
        assert refused(answering, b"other") == (503, "too-many-downloads")
    eventually(
        lambda: count(answering, "/closed") >= before + MOST_AT_ONCE + 2, "all of them are closed"
    )
    with ExitStack() as stack:
        begin(stack, answering, b"Authorization: greedy")


def test_strangers_leave_long_answers_to_known_requesters(answering: Served) -> None:
    with ExitStack() as stack:
        for number in range(MOST_ANONYMOUS):
            begin(stack, answering, b"X-Forwarded-For: %d" % number)
        assert refused(answering, origin=b"other") == (503, "too-many-downloads")
        for number in range(MOST_AT_ONCE - MOST_ANONYMOUS):
            begin(stack, answering, b"Authorization: %d" % number)


def test_an_answer_in_memory_is_never_refused(answering: Served) -> None:
    """Its view has done its work: a fetch has leased its messages."""
    with ExitStack() as stack:
        for _ in range(MOST_OF_REQUESTER + 2):
            connection = stack.enter_context(answering.connect())
            connection.sendall(b"GET /bounded HTTP/1.1\r\nHost: t\r\nAuthorization: x\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        begin(stack, answering, b"Authorization: x")


def test_a_refused_answer_produces_nothing(answering: Served) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_OF_REQUESTER):
            begin(stack, answering, b"Authorization: greedy")
        wait_until_nothing_is_produced(answering)
        before = produced(answering)
        assert refused(answering, b"greedy")[0] == 429
        assert produced(answering) == before


@pytest.mark.parametrize("path", ["/large", "/endless"])
def test_a_head_takes_no_place_and_keeps_its_connection(answering: Served, path: str) -> None:
    before = count(answering, "/closed")
    with answering.connect() as connection:
        for _ in range(MOST_OF_REQUESTER + 1):
            connection.sendall(f"HEAD {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            response, _ = answer(connection, method="HEAD")
            assert response.status == 200
            length = str(1000 * len(BLOCK)) if path == "/large" else None
            assert response.getheader("Content-Length") == length
    assert count(answering, "/closed") == before + MOST_OF_REQUESTER + 1


def test_a_short_streamed_answer_holds_no_pipe(answering: Served) -> None:
    response, body = answering.get("/streamed?short")
    assert response.getheader("Content-Length") == str(len(BLOCK))
    assert body == BLOCK


def test_a_streamed_answer_that_fails_at_its_beginning_is_a_problem(answering: Served) -> None:
    response, body = answering.get("/breaks-early")
    assert (response.status, orjson.loads(body)["type"]) == (500, "urn:inturn:problem:unexpected")
    assert "in the middle" in answering.log.read_text()


def test_answers_that_fit_into_a_pipe_are_read_from_the_pipe_of_their_own(tmp_path: Path) -> None:
    with (
        serving("bridged_answers", tmp_path, **{LARGE_PIPES: "1"}) as served,
        ThreadPoolExecutor(MOST_OF_REQUESTER) as clients,
    ):
        head = "GET /streamed HTTP/1.1\r\nHost: test\r\nAuthorization: {}\r\n\r\n"
        asked = [head.format(number).encode() for number in range(300)]
        answers = list(clients.map(served.ask, asked))
        assert {(response.status, body) for response, body in answers} == {(200, BLOCK * 75)}


class LateGranian:
    """A request whose file is opened only after all of it was produced."""

    def __init__(self) -> None:
        self.file = ""

    def response_bytes(self, status: int, headers: list[Header], body: bytes) -> None:
        raise NotImplementedError

    def response_file(self, status: int, headers: list[Header], file: str) -> None:
        self.file = file


@pytest.mark.parametrize("pipe_bytes", [PIPE_BYTES, 1024 * 1024])
def test_a_pipe_stays_until_it_is_opened(monkeypatch: pytest.MonkeyPatch, pipe_bytes: int) -> None:
    monkeypatch.setattr(long_answers, "PIPE_BYTES", pipe_bytes)
    request, written = LateGranian(), threading.Event()

    def parts() -> Iterator[bytes]:
        yield BLOCK * 64
        yield BLOCK
        written.set()

    async def scenario() -> bytes:
        answers = LongAnswers(stalled_seconds=SECONDS)
        closed: list[bool] = []
        long = LongAnswer(head=Head(), parts=parts(), close=lambda: closed.append(True))
        requester = Requester("x", is_known=True)
        sending = asyncio.ensure_future(answers.send(request, long, requester=requester, client=""))
        if pipe_bytes > PIPE_BYTES:
            await asyncio.to_thread(written.wait, SECONDS)
        else:
            while not request.file:
                await asyncio.sleep(0)
        got = await asyncio.to_thread(Path(request.file).read_bytes)
        await sending
        assert closed == [True]
        answers.close()
        return got

    assert asyncio.run(scenario()) == BLOCK * 65


def ask_on(connection: socket.socket, path: str) -> tuple[int, bytes]:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    response, body = answer(connection)
    return response.status, body


def test_without_a_free_descriptor_half_an_answer_does_not_look_complete(answering: Served) -> None:
    with answering.connect() as other, answering.connect() as connection:
        assert ask_on(other, "/limit")[0] == ask_on(connection, "/limit")[0] == 200
        connection.sendall(b"GET /breaks-crowded HTTP/1.1\r\nHost: test\r\n\r\n")
        with ThreadPoolExecutor(1) as reading:
            got = reading.submit(rest_of, connection)
            eventually(lambda: ask_on(other, "/limit")[1] == b"3", "no descriptor is free")
            assert ask_on(other, "/descriptors?1000")[0] == 200
            assert not got.result().endswith(b"\r\n0\r\n\r\n")


def test_without_a_free_descriptor_an_answer_is_a_problem_and_its_place_is_free_again(
    answering: Served,
) -> None:
    with answering.connect() as connection:
        ask = partial(ask_on, connection)
        before = int(ask("/closed")[1])
        assert ask("/descriptors?3")[0] == 200
        for _ in range(MOST_OF_REQUESTER + 1):
            status, body = ask("/streamed")
            assert (status, orjson.loads(body)["status"]) == (500, 500)
        assert ask("/descriptors?1000")[0] == 200
        assert int(ask("/closed")[1]) == before + MOST_OF_REQUESTER + 1
        assert ask("/streamed") == (200, BLOCK * 75)


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
