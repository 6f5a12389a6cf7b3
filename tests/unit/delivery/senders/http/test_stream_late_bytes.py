"""Bytes that come after an answer are never taken for the next one."""

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.senders.http.stream import UNTIDY_SECONDS
from delivery.states import OutcomeClass
from tests.support.receivers.raw import raw_server, read_header
from tests.unit.delivery.calls.calling import read_request
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
FAILED = b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"
LATE = "its answer is malformed: late bytes of an earlier answer before it"
SECONDS = 20

Send = Callable[..., Coroutine[Any, Any, Outcome]]


class SetClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class GoingOn:
    """Answers the first request of a connection, and calls `goes_on` for what follows."""

    def __init__(
        self, goes_on: Callable[[socket.socket], None], *, first: bytes = NO_CONTENT
    ) -> None:
        self.connections = 0
        self._goes_on = goes_on
        self._first = first

    def __call__(self, connection: socket.socket) -> None:
        self.connections += 1
        read_request(connection)
        connection.sendall(self._first)
        self._goes_on(connection)


def run(
    receiver: Callable[[socket.socket], None],
    scenario: Callable[[Send], Awaitable[None]],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    async def running(port: int) -> None:
        async with HttpClient(allowed_networks=LOOPBACK, clock=clock) as client:

            async def send(body: bytes = PARCEL.body) -> Outcome:
                to = endpoint(f"http://127.0.0.1:{port}/hook", timeout_seconds=SECONDS)
                return await client.send(replace(PARCEL, body=body), to)

            await scenario(send)

    with raw_server(receiver) as port, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(running(port))


@pytest.mark.parametrize(
    "late",
    [
        b'{"ok":true}',
        b"\r\n",
        b"0\r\n\r\n",
        b"<p>\r\n\r\n</p>\r\n\r\n",
        b"x",
        b"upstream said HTTP/1.1 404 Not Found",
        b"it said HTTP/1.1 404 Not Found\r\nand no more\r\n\r\n",
        b"a: b\r\n" * 5000,
    ],
)
@pytest.mark.parametrize("cuts", [False, True])
def test_a_late_body_is_not_the_next_answer(late: bytes, cuts: bool) -> None:
    """It arrives when the next request has been written."""

    def goes_on(connection: socket.socket) -> None:
        read_request(connection)
        if cuts:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(late)
            connection.sendall(FAILED[:5])
            connection.sendall(FAILED[5:])
        else:
            connection.sendall(late + FAILED)

    async def scenario(send: Send) -> None:
        assert (await send()).outcome is OutcomeClass.SUCCESS
        ended = await send()
        assert (ended.status_code, ended.error.startswith("its answer is malformed: ")) == (500, 1)

    run(GoingOn(goes_on), scenario)


def test_without_an_answer_after_it_a_late_body_is_none() -> None:
    def goes_on(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"{}\r\n\r\n")

    async def scenario(send: Send) -> None:
        await send()
        ended = await send()
        assert (ended.outcome, ended.error) == (
            OutcomeClass.UNREACHABLE,
            "the connection was closed before an answer came",
        )

    run(GoingOn(goes_on), scenario)


def test_too_many_late_bytes_end_the_attempt() -> None:
    def goes_on(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"x" * 1000 + b"\n\n")

    async def scenario(send: Send) -> None:
        await send()
        ended = await send()
        assert ended.outcome in (OutcomeClass.SUCCESS, OutcomeClass.UNREACHABLE)

    run(GoingOn(goes_on), scenario)


def test_bytes_that_nobody_has_read_before_the_next_request_end_the_connection() -> None:
    """A whole answer lies there; the event loop of a busy sender has not looked yet."""
    may_send, is_sent = threading.Event(), threading.Event()

    def goes_on(connection: socket.socket) -> None:
        assert may_send.wait(SECONDS)
        if not is_sent.is_set():
            connection.sendall(FAILED)
            is_sent.set()
        connection.recv(1)

    receiver = GoingOn(goes_on)

    async def scenario(send: Send) -> None:
        await send()
        may_send.set()
        # Keeps the event loop from reading.
        assert is_sent.wait(SECONDS)
        assert (await send()).status_code == 204

    run(receiver, scenario)
    assert receiver.connections == 2


def test_a_connection_that_the_receiver_closed_is_not_used() -> None:
    may_close = threading.Event()
    is_closed = threading.Event()

    def goes_on(connection: socket.socket) -> None:
        assert may_close.wait(SECONDS)
        connection.shutdown(socket.SHUT_RDWR)
        is_closed.set()

    async def scenario(send: Send) -> None:
        await send()
        may_close.set()
        assert is_closed.wait(SECONDS)
        assert (await send()).outcome is OutcomeClass.SUCCESS

    run(GoingOn(goes_on), scenario)


LARGE = b"x" * 32 * 1024 * 1024


def test_an_answer_while_the_next_request_is_written_is_of_the_earlier_one() -> None:
    may_read = threading.Event()

    def goes_on(connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(OK)
        assert may_read.wait(SECONDS)
        left = len(LARGE) - 64 * 1024
        while left > 0 and (part := connection.recv(1024 * 1024)):
            left -= len(part)
        connection.sendall(FAILED)

    async def scenario(send: Send) -> None:
        await send()
        sending = asyncio.create_task(send(LARGE))
        # Long enough to read the answer, which it must not take.
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not sending.done()
        may_read.set()
        ended = await sending
        assert (ended.status_code, ended.error) == (500, LATE)

    run(GoingOn(goes_on), scenario)


def test_an_early_answer_counts_if_no_other_follows() -> None:
    """nginx does so where it returns a status: it reads the request, and keeps the connection."""

    def goes_on(connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok")
        while connection.recv(1024 * 1024):
            continue

    receiver = GoingOn(goes_on)

    async def scenario(send: Send) -> None:
        await send()
        ended = await send(LARGE)
        assert (ended.status_code, ended.error) == (202, "")

    run(receiver, scenario)
    assert receiver.connections == 1


def test_an_answer_that_does_not_want_the_rest_of_a_request_counts() -> None:
    def goes_on(connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(
            b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        while connection.recv(65_536):
            continue

    async def scenario(send: Send) -> None:
        await send()
        ended = await send(LARGE)
        assert (ended.status_code, ended.error) == (413, "")

    run(GoingOn(goes_on), scenario)


def test_a_receiver_that_sent_more_than_its_answer_gets_a_new_connection_each_time() -> None:
    clock = SetClock()
    has_strayed = False

    def goes_on(connection: socket.socket) -> None:
        while True:
            read_request(connection)
            connection.sendall(NO_CONTENT)

    class Straying(GoingOn):
        def __call__(self, connection: socket.socket) -> None:
            nonlocal has_strayed
            self._first = NO_CONTENT if has_strayed else NO_CONTENT + b"{}"
            has_strayed = True
            super().__call__(connection)

    receiver = Straying(goes_on)

    async def scenario(send: Send) -> None:
        for number in range(1, 4):
            await send()
            assert receiver.connections == number
        clock.now += UNTIDY_SECONDS + 1
        for _ in range(3):
            await send()
        assert receiver.connections == 4

    run(receiver, scenario, clock=clock)
