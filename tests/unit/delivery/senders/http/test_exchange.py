"""The bytes of a request, and the connection after its answer."""

import asyncio
import socket
import threading
from dataclasses import replace

import pytest

from delivery.senders.http.client import HttpClient
from delivery.senders.http.exchange import JOINED_BYTES, Target
from delivery.states import OutcomeClass
from tests.support.receivers import Receiver
from tests.support.receivers.raw import raw_server, read_header
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint, send


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
    has_ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        nonlocal connections
        connections += 1
        read_header(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        # Otherwise all of the request may be written before the sender looks for an answer.
        assert has_ended.wait(20)
        while connection.recv(65_536):
            continue

    async def sending(port: int) -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            large = replace(PARCEL, body=b"x" * 32 * 1024 * 1024)
            to = endpoint(f"http://127.0.0.1:{port}/", timeout_seconds=30.0)
            for parcel in (large, PARCEL):
                assert (await client.send(parcel, to)).outcome is OutcomeClass.SUCCESS
                has_ended.set()

    with raw_server(answer) as port:
        asyncio.run(sending(port))
    assert connections == 2


def written(headers: dict[str, str], body: bytes | None = b"") -> bytes:
    loop = asyncio.new_event_loop()
    try:
        return b"".join(Target("PUT", "http://[::1]:81?q=%2f", loop=loop).written(headers, body))
    finally:
        loop.close()


@pytest.mark.parametrize("length", [JOINED_BYTES, JOINED_BYTES + 1])
def test_a_request_is_written_as_its_headers_say(length: int) -> None:
    body = b"x" * length
    assert (
        written({"X-A": "\tä", "content-type": "a/b", "User-Agent": "c"}, body)
        == (
            "PUT /?q=%2f HTTP/1.1\r\nHost: [::1]:81\r\nX-A: \tä\r\ncontent-type: a/b\r\n"
            f"User-Agent: c\r\nContent-Length: {length}\r\n\r\n"
        ).encode()
        + body
    )


def test_a_request_without_a_body_has_no_headers_about_one() -> None:
    assert b"\r\nContent-" not in written({}, None)


@pytest.mark.parametrize("character", ["\r", "\n", "\0", "\x01", "\x7f"])
def test_a_control_character_in_a_header_is_not_written(character: str) -> None:
    for headers in ({"X-A": f"b{character}c"}, {f"X{character}A": "b"}):
        with pytest.raises(ValueError, match="control character"):
            written(headers)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:9/", "webr://", "http://user@127.0.0.1:9/"])
def test_nothing_is_sent_to_a_url_that_no_endpoint_may_have(url: str) -> None:
    ended = send(url)
    assert ended.outcome is OutcomeClass.UNSENDABLE
    assert ended.error == "the endpoint is not a valid URL"
