"""Once there is a status, it is the outcome, whatever becomes of the rest of the answer."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
import uvloop

from delivery.outcome import Outcome
from delivery.senders.http import reception
from delivery.senders.http.answer import BegunAnswer
from delivery.senders.http.client import HttpClient
from delivery.senders.http.reception import Reception
from delivery.senders.http.request import make_request
from delivery.senders.parcel import Endpoint
from delivery.states import OutcomeClass
from tests.support.receivers.raw import raw_server
from tests.unit.delivery.calls.calling import read_request
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint

# Only a hang takes so long.
SECONDS = 20


def answered(
    answer: bytes, attempt: Callable[[HttpClient, Endpoint], Awaitable[Outcome]]
) -> Outcome:
    """Let a client make an attempt; the receiver leaves the connection open after its answer."""

    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        connection.recv(1)

    async def running(port: int) -> Outcome:
        to = endpoint(f"http://127.0.0.1:{port}/hook", timeout_seconds=60.0)
        async with asyncio.timeout(SECONDS), HttpClient(allowed_networks=LOOPBACK) as client:
            return await attempt(client, to)

    with raw_server(talk) as port, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(running(port))


def sent(client: HttpClient, to: Endpoint) -> Awaitable[Outcome]:
    return client.send(PARCEL, to)


def test_a_date_that_no_calendar_has_does_not_cost_the_status() -> None:
    ended = answered(
        b"HTTP/1.1 503 Later\r\nContent-Length: 4\r\n"
        b"Retry-After: Mon, 01 Jan 2024 00:00:00 +99999999999999\r\n\r\nbusy",
        sent,
    )
    assert (ended.outcome, ended.status_code, ended.error) == (OutcomeClass.UNAVAILABLE, 503, "")
    assert (ended.excerpt, ended.retry_after_seconds) == (b"busy", None)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, OutcomeClass.SUCCESS),
        (422, OutcomeClass.CLIENT_ERROR),
        (503, OutcomeClass.UNAVAILABLE),
    ],
)
def test_a_fault_of_ours_in_reading_an_answer_is_logged_and_the_status_counts(
    status: int, expected: OutcomeClass, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(answer: BegunAnswer, *, success_codes: frozenset[int] | None) -> Reception:
        raise RuntimeError("a fault of ours")

    def attempt(client: HttpClient, to: Endpoint) -> Awaitable[Outcome]:
        return client.attempt(make_request(PARCEL, to, now=datetime.now(UTC)), fail)

    ended = answered(b"HTTP/1.1 %d What\r\nContent-Length: 2\r\n\r\nok" % status, attempt)
    assert (ended.outcome, ended.status_code, ended.error) == (expected, status, "")
    assert f"an answer of status {status} counts, but cannot be read" in caplog.text


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", OutcomeClass.SUCCESS),
        (b"HTTP/1.1 422 No\r\n\r\nhalf", OutcomeClass.CLIENT_ERROR),
    ],
)
def test_a_stop_while_the_body_is_read_does_not_cost_the_status(
    begun: bytes, expected: OutcomeClass, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a message that was taken would be sent again."""
    monkeypatch.setattr(reception, "READ_SECONDS", 60.0)
    has_head = asyncio.Event()

    async def attempt(client: HttpClient, to: Endpoint) -> Outcome:
        read = client._read

        async def reading(answer: BegunAnswer, **wants: frozenset[int] | None) -> Reception:
            has_head.set()
            return await read(answer, success_codes=wants["success_codes"])

        monkeypatch.setattr(client, "_read", reading)
        sending = asyncio.create_task(client.send(PARCEL, to))
        await has_head.wait()
        client.is_closing = True
        sending.cancel()
        return await sending

    assert answered(begun, attempt).outcome is expected


@pytest.mark.parametrize("header", [b"", b"Content-Length: 2, 3\r\n", b"Connection: close\r\n"])
def test_a_success_without_an_announced_end_is_not_waited_for(
    header: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody keeps its body, and the receiver may leave the connection open."""
    monkeypatch.setattr(reception, "READ_SECONDS", 60.0)
    ended = answered(b"HTTP/1.1 200 OK\r\n" + header + b"\r\nok", sent)
    assert ended.outcome is OutcomeClass.SUCCESS
