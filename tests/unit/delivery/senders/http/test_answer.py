"""A caller that wants the body gets as much as it asks for, and is told how it ended."""

import asyncio
import socket
import threading

import pytest
import uvloop

from delivery.senders.http.answer import BegunAnswer, BodyEnd
from delivery.senders.http.client import HttpClient
from tests.support.receivers.raw import raw_server, read_header
from tests.unit.delivery.senders.http.test_client import LOOPBACK

TEN = b"0123456789"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def read(answer: bytes, *, most: int = 10, seconds: float = 20.0, closes: bool = True) -> object:
    """Return what a caller gets that wants so many bytes within so many seconds."""
    may_end = threading.Event()

    def talk(connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(answer)
        if not closes:
            may_end.wait(20)

    async def reading(begun: BegunAnswer) -> tuple[bytes, BodyEnd, str]:
        body, end = await begun.read(most)
        return body, end, begun.note

    async def request(port: int) -> object:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            target = client.exchange.target("GET", f"http://127.0.0.1:{port}/")
            try:
                return await client.exchange.request(
                    target,
                    target.written({}, None),
                    reading,
                    seconds=seconds,
                    may_begin=lambda: True,
                )
            finally:
                may_end.set()

    with raw_server(talk) as port, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(request(port))


BROKEN = "its answer is malformed: a body that ends early"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (LENGTH % 10 + TEN, (TEN, BodyEnd.WHOLE, "")),
        (CHUNKED + b"a\r\n" + TEN + b"\r\n0\r\n\r\n", (TEN, BodyEnd.WHOLE, "")),
        (b"HTTP/1.1 200 OK\r\n\r\n" + TEN, (TEN, BodyEnd.WHOLE, "")),
        (LENGTH % 11 + TEN + b"!", (TEN, BodyEnd.CUT, "")),
        (CHUNKED + b"f\r\n" + TEN + b"!!!!!", (TEN, BodyEnd.CUT, "")),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * 1000 + b"\r\n", (b"", BodyEnd.WHOLE, "")),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * 2000, (b"", BodyEnd.CUT, "")),
        (CHUNKED + (b"1;" + b"x" * 4000 + b"\r\na\r\n") * 5, (b"aa", BodyEnd.CUT, "")),
        (LENGTH % 10 + TEN[:5], (TEN[:5], BodyEnd.BROKEN, BROKEN)),
        (CHUNKED + b"5\r\n" + TEN[:5], (TEN[:5], BodyEnd.BROKEN, BROKEN)),
        (
            CHUNKED + b"5\r\n" + TEN + b"\r\n",
            (TEN[:5], BodyEnd.UNUSABLE, "its answer is malformed: an invalid chunk"),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n" + TEN,
            (TEN, BodyEnd.UNUSABLE, "its answer is malformed: an invalid Content-Length"),
        ),
    ],
)
def test_a_body_has_an_end(answer: bytes, expected: object) -> None:
    assert read(answer) == expected


def test_a_body_that_takes_longer_than_the_exchange_may_is_overdue() -> None:
    answer = read(LENGTH % 10 + TEN[:5], seconds=0.5, closes=False)
    assert answer == (TEN[:5], BodyEnd.OVERDUE, "")
