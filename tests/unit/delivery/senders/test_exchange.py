"""The bytes of a request, and the connection after its answer."""

import asyncio
import socket
from dataclasses import replace

from delivery.senders.http.client import HttpClient
from delivery.states import OutcomeClass
from tests.support.receivers import Receiver
from tests.support.receivers.raw import raw_server, read_header
from tests.unit.delivery.senders.test_http import LOOPBACK, PARCEL, endpoint


def test_an_empty_message_is_sent_with_its_length(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")

    async def sending() -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            empty = replace(PARCEL, body=b"", content_type="")
            await client.send(empty, endpoint(hook.url, headers={"user-agent": "own"}))

    asyncio.run(sending())
    (request,) = hook.received
    names = ("Content-Length", "Content-Type", "User-Agent")
    assert [request.headers[name] for name in names] == ["0", "application/octet-stream", "own"]


def test_an_answer_before_the_end_of_the_request_counts_and_ends_the_connection() -> None:
    connections = 0

    def answer(connection: socket.socket) -> None:
        nonlocal connections
        connections += 1
        read_header(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        while connection.recv(65_536):
            continue

    async def sending(port: int) -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            large = replace(PARCEL, body=b"x" * 32 * 1024 * 1024)
            to = endpoint(f"http://127.0.0.1:{port}/", timeout_seconds=30.0)
            for parcel in (large, PARCEL):
                assert (await client.send(parcel, to)).outcome is OutcomeClass.SUCCESS

    with raw_server(answer) as port:
        asyncio.run(sending(port))
    assert connections == 2
