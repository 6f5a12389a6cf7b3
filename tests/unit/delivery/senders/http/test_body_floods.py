"""A receiver that sends unrequested data is cut off, delays no other and fills no memory."""

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.states import OutcomeClass
from tests.support.receivers import Receiver
from tests.support.receivers.raw import raw_server, read_header
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
# The capacity of the sockets of both sides, and more than is ever read.
MOST_BYTES = 16 * 1024 * 1024


class Flood:
    """Sends the same bytes repeatedly until the connection ends; `sent` counts them."""

    def __init__(self, sends: bytes, *, before: bytes = b"") -> None:
        self.sent = 0
        self.may_begin = threading.Event()
        self.may_begin.set()
        self.has_ended = threading.Event()
        self._before = before
        self._sends = sends * (65_536 // len(sends))

    def __call__(self, connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(self._before)
        self.may_begin.wait()
        try:
            while self.sent < 1024 * MOST_BYTES:
                connection.sendall(self._sends)
                self.sent += len(self._sends)
        finally:
            self.has_ended.set()


def sending(*ports: int) -> list[Outcome]:
    """Send to all of them at once, by one sender's client."""

    async def send() -> list[Outcome]:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            return await asyncio.gather(
                *(
                    client.send(
                        PARCEL, endpoint(f"http://127.0.0.1:{port}/hook", timeout_seconds=20.0)
                    )
                    for port in ports
                )
            )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(send())


@pytest.mark.parametrize("sends", [CONTINUE, HINTS], ids=["100", "103"])
def test_a_flood_of_informational_answers_ends_the_attempt(
    receiver: Receiver, sends: bytes
) -> None:
    hook = receiver.endpoint("hook")
    flood = Flood(sends)
    with raw_server(flood) as port:
        flooded, well = sending(port, receiver.port)
    assert (flooded.outcome, flooded.error) == (
        OutcomeClass.UNREACHABLE,
        "it sent more than 10 informational answers (1xx)",
    )
    assert well.outcome is OutcomeClass.SUCCESS
    assert len(hook.received) == 1
    assert flood.sent < MOST_BYTES


def test_a_header_without_end_ends_the_attempt(receiver: Receiver) -> None:
    flood = Flood(b"X-Header: " + b"x" * 1000 + b"\r\n", before=b"HTTP/1.1 200 OK\r\n")
    with raw_server(flood) as port:
        (flooded,) = sending(port)
    assert (flooded.outcome, flooded.error) == (
        OutcomeClass.UNREACHABLE,
        "it sent more than 64 KiB before an answer",
    )
    assert flood.sent < MOST_BYTES


def test_large_informational_answers_end_the_attempt_before_they_are_many() -> None:
    flood = Flood(HINTS.replace(b"</style.css>", b"x" * 8000), before=b"")
    with raw_server(flood) as port:
        (flooded,) = sending(port)
    assert flooded.error == "it sent more than 64 KiB before an answer"


def test_unrequested_data_ends_an_idle_connection() -> None:
    flood = Flood(OK, before=OK)
    flood.may_begin.clear()

    async def send(port: int) -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            to = endpoint(f"http://127.0.0.1:{port}/hook", timeout_seconds=20.0)
            assert (await client.send(PARCEL, to)).outcome is OutcomeClass.SUCCESS
            flood.may_begin.set()
            assert await asyncio.to_thread(flood.has_ended.wait, 20)
            assert (await client.send(PARCEL, to)).outcome is OutcomeClass.SUCCESS

    with raw_server(flood) as port:
        asyncio.run(send(port))
    assert flood.sent < 2 * MOST_BYTES


def test_the_beginning_of_an_unrequested_answer_ends_an_idle_connection() -> None:
    is_idle, has_ended = threading.Event(), threading.Event()

    def answer(connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(OK)
        assert is_idle.wait(20)
        if not has_ended.is_set():
            connection.sendall(OK[:10])
            assert connection.recv(1) == b""
            has_ended.set()

    async def send(port: int) -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            to = endpoint(f"http://127.0.0.1:{port}/hook", method="GET", timeout_seconds=20.0)
            assert (await client.send(PARCEL, to)).outcome is OutcomeClass.SUCCESS
            is_idle.set()
            assert await asyncio.to_thread(has_ended.wait, 20)
            assert (await client.send(PARCEL, to)).outcome is OutcomeClass.SUCCESS

    with raw_server(answer) as port:
        asyncio.run(send(port))


def test_an_answer_without_end_over_tls_ends_with_the_attempt(tmp_path: Path) -> None:
    """To close such a connection politely would mean to read on until the receiver stops."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 "
        "-subj /CN=here -addext subjectAltName=IP:127.0.0.1 "
        f"-keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    flood = Flood(b"x", before=b"HTTP/1.1 200 OK\r\n\r\n")

    def answer(connection: socket.socket) -> None:
        with server.wrap_socket(connection, server_side=True) as secured:
            flood(secured)

    async def send(port: int) -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            client.exchange.connector._ssl = ssl.create_default_context(cafile=certificate)
            to = endpoint(f"https://127.0.0.1:{port}/hook", timeout_seconds=20.0)
            assert (await client.send(PARCEL, to)).outcome is OutcomeClass.SUCCESS
            assert await asyncio.to_thread(flood.has_ended.wait, 20)

    with (
        raw_server(answer) as port,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(send(port))
    assert flood.sent < MOST_BYTES


def _answering(before: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        for _ in range(3):
            read_header(connection)
            connection.sendall(before + OK)

    return answer


def test_some_informational_answers_are_skipped_before_each_answer() -> None:
    async def send(port: int) -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            for _ in range(3):
                to = endpoint(f"http://127.0.0.1:{port}/hook", method="GET", timeout_seconds=20.0)
                assert (await client.send(PARCEL, to)).status_code == 200

    with raw_server(_answering(HINTS * 10)) as port:
        asyncio.run(send(port))


@pytest.mark.parametrize("size", [4095, 4096, 4097, 100_000])
def test_an_answer_of_any_size_is_read_as_it_was(size: int) -> None:
    body = bytes(number % 251 for number in range(size))

    def answer(connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(b"HTTP/1.1 500 Oh\r\nContent-Length: %d\r\n\r\n" % size + body)

    with raw_server(answer) as port:
        (ended,) = sending(port)
    assert (ended.status_code, ended.error) == (500, "")
    assert ended.excerpt == body[:4096]
