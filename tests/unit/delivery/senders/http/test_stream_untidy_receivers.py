"""Bytes that belong to no answer cost a receiver one attempt at most."""

import asyncio
import socket
import threading

import pytest

from delivery.states import OutcomeClass
from tests.unit.delivery.calls.calling import read_request
from tests.unit.delivery.senders.http.test_stream_late_bytes import (
    LATE,
    NO_CONTENT,
    GoingOn,
    Send,
    run,
)

ODD = b"HTTP/1.1 200 OK\r\nX Y: z\r\nContent-Length: 0\r\n\r\n"
CLOSED = "the connection was closed before an answer came"
SECONDS = 20


@pytest.mark.parametrize(
    "received",
    [
        b"{}" + ODD,
        b"{}",
        b"\r\n",
        b"{}\r\n\r\n",
        b"{}\r\n\r\nHTTP/1.1 200 OK\r\nX: ",
        b"<p>\n\n" + b"HTTP/1.1 102 Processing\r\n\r\n" * 11,
        b"{}\n\n" + b"x" * 70_000,
    ],
)
def test_late_bytes_without_a_tidy_answer_after_them_cost_one_attempt(received: bytes) -> None:
    def goes_on(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(received)

    async def scenario(send: Send) -> None:
        ended = [await send() for _ in range(5)]
        assert [attempt.outcome for attempt in ended] == [
            OutcomeClass.SUCCESS,
            OutcomeClass.UNREACHABLE,
            *[OutcomeClass.SUCCESS] * 3,
        ]
        assert ended[1].excerpt
        assert received.startswith(ended[1].excerpt[:20])

    run(GoingOn(goes_on), scenario)


def test_late_bytes_before_a_tidy_answer_are_noted_once() -> None:
    def goes_on(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"{}" + NO_CONTENT)

    receiver = GoingOn(goes_on)

    async def scenario(send: Send) -> None:
        assert [(await send()).error for _ in range(4)] == ["", LATE, "", ""]

    run(receiver, scenario)
    assert receiver.connections == 3


def test_the_other_idle_connections_of_a_receiver_with_stray_bytes_are_not_used() -> None:
    together, served = threading.Barrier(3), list[int]()
    connections = 0

    def receiver(connection: socket.socket) -> None:
        nonlocal connections
        connections += 1
        number = connections
        if number > 3:
            read_request(connection)
            served.append(number)
            connection.sendall(NO_CONTENT)
            return
        read_request(connection)
        together.wait(SECONDS)
        connection.sendall(NO_CONTENT)
        read_request(connection)
        if connections == 3 and not served:
            served.append(number)
            connection.sendall(NO_CONTENT + b"{}")

    async def scenario(send: Send) -> None:
        await asyncio.gather(*[send() for _ in range(3)])
        for _ in range(4):
            assert (await send()).status_code == 204

    run(receiver, scenario)
    assert served[0] in (1, 2, 3)
    assert served[1:] == [4, 5, 6]


END_OF_IDLE = [
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 408 Request Time-out\r\nCache-Control: no-cache\r\nConnection: close\r\n"
    b"Content-Type: text/html\r\n\r\n<html><body>408 Request Time-out</body></html>\n",
]


@pytest.mark.parametrize("end", END_OF_IDLE)
def test_a_408_that_ends_a_used_connection_is_not_the_answer(end: bytes) -> None:
    def goes_on(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(end)

    async def scenario(send: Send) -> None:
        await send()
        ended = await send()
        assert (ended.outcome, ended.error) == (OutcomeClass.UNREACHABLE, CLOSED)
        assert (await send()).outcome is OutcomeClass.SUCCESS

    run(GoingOn(goes_on), scenario)


def test_a_408_that_keeps_the_connection_or_comes_on_a_new_one_is_the_answer() -> None:
    kept = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"

    def goes_on(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(kept)
        read_request(connection)

    async def scenario(send: Send) -> None:
        await send()
        assert (await send()).status_code == 408

    run(GoingOn(goes_on), scenario)

    async def only(send: Send) -> None:
        assert (await send()).status_code == 408

    run(GoingOn(read_request, first=END_OF_IDLE[0]), only)


def test_a_receiver_that_ends_an_idle_connection_with_408_is_not_untidy() -> None:
    may_end, has_ended = threading.Event(), threading.Event()
    connections = 0

    def receiver(connection: socket.socket) -> None:
        nonlocal connections
        connections += 1
        read_request(connection)
        connection.sendall(NO_CONTENT)
        if connections == 1:
            assert may_end.wait(SECONDS)
            connection.sendall(END_OF_IDLE[1])
            assert connection.recv(1) == b""
            has_ended.set()
            return
        read_request(connection)
        connection.sendall(NO_CONTENT)

    async def scenario(send: Send) -> None:
        await send()
        may_end.set()
        assert await asyncio.to_thread(has_ended.wait, SECONDS)
        await send()
        await send()

    run(receiver, scenario)
    assert connections == 2
