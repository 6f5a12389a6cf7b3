"""Each way an attempt can end, against real receivers."""

import asyncio
import ipaddress
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from delivery.outcome import EXCERPT_BYTES, Outcome
from delivery.senders.http.client import HttpClient
from delivery.senders.http.request import make_request
from delivery.senders.parcel import Endpoint, Parcel
from delivery.states import OutcomeClass
from subscriptions.values.addresses import Network
from tests.support.receivers import OK, Answer, Close, Drip, Hold, Receiver, Stream
from tests.support.receivers.raw import raw_server
from tests.unit.delivery.test_verdict import TEAMFORGE

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]

PARCEL = Parcel(
    delivery_id=5,
    subscription_id=1,
    message_id=7,
    attempts=2,
    attempts_before=0,
    is_skipped=False,
    redelivery="in-doubt",
    event="Test.Event",
    content_type="application/json",
    body=b'{"a": 1}',
)


def endpoint(url: str, **fields: object) -> Endpoint:
    given = {"method": "POST", "headers": {}, "timeout_seconds": 1.0, "rules": TEAMFORGE} | fields
    return Endpoint(
        subscription_id=1,
        lane_id=1,
        version="1",
        is_active=True,
        is_disabled=False,
        url=url,
        signing_keys=(b"k" * 32,),
        **given,  # type: ignore[arg-type]
    )


def send(url: str, *, allowed: Sequence[Network] = LOOPBACK, **fields: object) -> Outcome:
    async def sending() -> Outcome:
        async with HttpClient(allowed_networks=allowed) as client:
            return await client.send(PARCEL, endpoint(url, **fields))

    return asyncio.run(sending())


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, OutcomeClass.SUCCESS),
        (204, OutcomeClass.SUCCESS),
        (404, OutcomeClass.CLIENT_ERROR),
        (429, OutcomeClass.RATE_LIMITED),
        (500, OutcomeClass.SERVER_ERROR),
        (503, OutcomeClass.UNAVAILABLE),
    ],
)
def test_an_answer_is_classed_by_its_status(
    receiver: Receiver, status: int, outcome: OutcomeClass
) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(status))
    ended = send(hook.url)
    assert (ended.outcome, ended.status_code, ended.error) == (outcome, status, "")


def test_the_receiver_gets_the_bytes_and_our_headers(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    send(
        f"{hook.url}?a=b%2Fc", method="PATCH", headers={"X-Own": "yes", "Authorization": "Bearer t"}
    )
    (request,) = hook.received
    assert request.body == PARCEL.body
    assert request.method == "PATCH"
    assert request.path.endswith("?a=b%2Fc")
    expected = {
        "webhook-id": "msg_7",
        "inturn-event": "Test.Event",
        "inturn-attempt": "3",
        "inturn-delivery": "5",
        "inturn-redelivery": "in-doubt",
        "Content-Type": "application/json",
        "X-Own": "yes",
        "Authorization": "Bearer t",
    }
    assert {name: request.headers[name] for name in expected} == expected


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    hook, elsewhere = receiver.endpoint("hook"), receiver.endpoint("elsewhere")
    hook.always(Answer(307, headers={"Location": elsewhere.url}))
    assert send(hook.url).outcome is OutcomeClass.REDIRECT
    assert elsewhere.received == []


def test_the_beginning_of_a_failures_answer_is_kept(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(500, body=b"x" * 100_000, headers={"Retry-After": "7"}))
    ended = send(hook.url)
    assert ended.excerpt == b"x" * EXCERPT_BYTES
    assert ended.retry_after_seconds == 7


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_end_is_judged_by_its_status_at_once(
    receiver: Receiver, status: int
) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Stream(status))
    ended = send(hook.url, timeout_seconds=30.0)
    assert ended.status_code == status
    assert ended.duration_ms < 10_000


def test_a_receiver_that_drips_its_answer_does_not_keep_the_lane(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Drip())
    ended = send(hook.url, timeout_seconds=30.0)
    assert ended.outcome is OutcomeClass.SUCCESS
    assert ended.duration_ms < 10_000


def test_a_receiver_that_never_answers_is_timed_out(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Hold())
    ended = send(hook.url)
    assert (ended.outcome, ended.error) == (OutcomeClass.TIMEOUT, "no answer within 1 s")


def test_a_connection_closed_without_a_word_is_unreachable(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Close())
    assert send(hook.url).outcome is OutcomeClass.UNREACHABLE


def test_a_refused_connection_is_unreachable(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    receiver.refuse_connections()
    ended = send(hook.url)
    assert ended.outcome is OutcomeClass.UNREACHABLE
    assert ended.reason == f"unreachable: connection refused (127.0.0.1:{receiver.port})"


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    ended = send("http://no-such-name.invalid/")
    assert ended.outcome is OutcomeClass.UNREACHABLE
    assert "no-such-name.invalid" in ended.error


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
def test_a_forbidden_address_is_refused_when_connecting(receiver: Receiver, host: str) -> None:
    hook = receiver.endpoint("hook")
    ended = send(f"http://{host}:{receiver.port}/hook", allowed=[])
    assert ended.outcome in (OutcomeClass.REFUSED_ADDRESS, OutcomeClass.UNREACHABLE)
    assert "INTURN_ALLOWED_NETWORKS" in ended.error
    assert hook.received == []


def test_an_attempt_interrupted_by_a_stop_says_so(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Hold())

    async def stopping() -> Outcome:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            sending = asyncio.create_task(
                client.send(PARCEL, endpoint(hook.url, timeout_seconds=60.0))
            )
            await asyncio.to_thread(hook.wait_for, lambda received: len(received) == 1)
            client.is_closing = True
            sending.cancel()
            return await sending

    ended = asyncio.run(stopping())
    assert (ended.outcome, ended.error) == (
        OutcomeClass.TIMEOUT,
        "Inturn was stopped before the answer",
    )


def test_connections_are_kept_and_used_again(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(200, body=b"thanks"))

    async def sending() -> int:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            for attempts in range(5):
                await client.send(replace(PARCEL, attempts=attempts), endpoint(hook.url))
            return len(client.exchange.connector._conns)

    assert asyncio.run(sending()) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_an_attempt_is_one_request_even_when_a_kept_connection_breaks(
    receiver: Receiver, method: str
) -> None:
    hook = receiver.endpoint("hook")
    hook.next(OK, Close())

    async def sending() -> list[OutcomeClass]:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            outcomes = [
                await client.send(PARCEL, endpoint(hook.url, method=method)) for _ in range(2)
            ]
            return [ended.outcome for ended in outcomes]

    assert asyncio.run(sending()) == [OutcomeClass.SUCCESS, OutcomeClass.UNREACHABLE]
    assert len(hook.received) == 2


def test_a_prepared_request_is_used_while_it_is_recent(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    to = endpoint(hook.url)
    now = datetime.now(UTC)
    stale = make_request(PARCEL, to, now=now - timedelta(minutes=5))
    other = make_request(replace(PARCEL, delivery_id=PARCEL.delivery_id + 1), to, now=now)

    async def sending() -> None:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            for request in (stale, other, make_request(PARCEL, to, now=now)):
                await client.send(PARCEL, to, request=request)

    asyncio.run(sending())
    for received in hook.received:
        assert received.headers["inturn-delivery"] == str(PARCEL.delivery_id)
        assert int(received.headers["webhook-timestamp"]) >= int(now.timestamp())


@pytest.fixture
def untrusted_server(tmp_path: Path) -> Iterator[int]:
    """The port of a TLS server with an untrusted certificate."""
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
        f"-keyout {tmp_path}/key.pem -out {tmp_path}/cert.pem".split(),
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with raw_server(lambda connection: _shake_hands(connection, context)) as port:
        yield port


def _shake_hands(connection: socket.socket, context: ssl.SSLContext) -> None:
    context.wrap_socket(connection, server_side=True).close()


def test_an_untrusted_certificate_fails(untrusted_server: int) -> None:
    ended = send(f"https://127.0.0.1:{untrusted_server}/hook", timeout_seconds=10.0)
    assert ended.outcome is OutcomeClass.TLS
    assert "certificate" in ended.error
