"""Forwarded headers of messages: reading and sending them."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from django.conf import settings

from delivery.calls.client_thread import client_thread
from delivery.calls.http import call_for_answer
from delivery.database.statements import statement
from delivery.models import Delivery, Lane, LaneKind
from delivery.outcome import Outcome
from delivery.publishing.callback_tokens import make_token
from delivery.publishing.reply_headers import reply_key
from delivery.senders.http.client import HttpClient
from delivery.senders.http.request import make_request
from delivery.senders.parcel import Endpoint
from subscriptions.models import Kind, Subscription
from tests.support import factories
from tests.support.receivers import OK, Answer, Receiver
from tests.support.receivers.received import Received
from tests.unit.delivery.senders.reading import fetch, run_parameters
from tests.unit.delivery.senders.test_http import LOOPBACK, PARCEL, endpoint
from tests.unit.delivery.senders.test_reading_by_priority import parameters as priority_parameters
from tests.unit.delivery.senders.test_reading_due import read as read_due
from tests.unit.delivery.senders.test_reading_groups import parameters


def pushed(to: Endpoint, headers: Mapping[str, str]) -> Outcome:
    async def sending() -> Outcome:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            return await client.send(replace(PARCEL, headers=headers), to)

    return asyncio.run(sending())


def called(to: Endpoint, headers: Mapping[str, str]) -> Outcome:
    request = make_request(replace(PARCEL, headers=headers), to, now=datetime.now(UTC))
    return call_for_answer(request, client=client_thread(allowed_networks=LOOPBACK)).outcome


def values(got: Received, name: str) -> list[str]:
    return [value for sent, value in got.headers.items() if sent.lower() == name]


WAYS = pytest.mark.parametrize("way", [pushed, called])


@WAYS
def test_they_are_sent_beside_our_own(receiver: Receiver, way: Any) -> None:
    hook = receiver.endpoint("hook")
    to = endpoint(hook.url, headers={"X-Team": "ours"}, forward_headers=("x-*", "user-agent"))
    ended = way(
        to, {"x-github-event": "push", "x-team": "theirs", "user-agent": "GitHub", "accept": "a/b"}
    )
    (got,) = hook.received
    assert got.headers["X-GitHub-Event"] == "push"
    assert values(got, "x-team") == ["ours"]
    assert values(got, "user-agent") == ["GitHub"]
    assert values(got, "webhook-id") == ["msg_7"]
    assert values(got, "content-type") == ["application/json"]
    assert got.headers.get("Accept") != "a/b"
    assert (ended.reason, ended.error) == ("200", "")


@WAYS
def test_a_value_beyond_ascii_is_sent_as_utf_8(receiver: Receiver, way: Any) -> None:
    hook = receiver.endpoint("hook")
    way(endpoint(hook.url, forward_headers=("*",)), {"x-author": "Müller, 日本"})
    (got,) = hook.received
    # The receiver reads bytes that are no UTF-8 as surrogates.
    assert got.headers["X-Author"] == "Müller, 日本"


@WAYS
def test_an_attempt_says_what_was_left_out(receiver: Receiver, way: Any) -> None:
    hook = receiver.endpoint("hook")
    hook.next(OK, Answer(500))
    to = endpoint(hook.url, forward_headers=("*",))
    headers = {"x-fits": "1", "x-evil": "a\r\nX-Injected: 1"}
    delivered, failed = way(to, headers), way(to, headers)
    for got in hook.received:
        assert got.headers["X-Fits"] == "1"
        assert not {"X-Evil", "X-Injected"} & set(got.headers)
    assert delivered.error.startswith("sent without headers of the message: x-evil (at most 50")
    assert failed.reason.startswith("500: sent without headers of the message: x-evil")


def test_without_patterns_the_same_headers_are_made() -> None:
    now = datetime.now(UTC)
    to = endpoint("http://127.0.0.1/")
    with_headers = make_request(replace(PARCEL, headers={"x-a": "1"}), to, now=now)
    assert with_headers.headers == make_request(PARCEL, to, now=now).headers


@pytest.mark.django_db
def test_an_ordered_lane_reads_headers_only_of_what_sends_them_along() -> None:
    subscriber = factories.subscriber()
    plain, forwarding = two(subscriber=subscriber)
    rows = fetch(statement("read_runs"), run_parameters(subscriber.lane.pk))
    assert read_headers(rows) == {plain.pk: None, forwarding.pk: {"x-a": "1"}}


@pytest.mark.django_db
def test_the_retry_lane_reads_headers_only_of_what_sends_them_along() -> None:
    lane = Lane.objects.get(kind=LaneKind.RETRY)
    plain, forwarding = two(lane=lane)
    assert read_headers(read_due(LaneKind.RETRY)) == {plain.pk: None, forwarding.pk: {"x-a": "1"}}


@pytest.mark.django_db
def test_a_queue_sender_reads_headers_of_groups_in_which_somebody_sends_them_along() -> None:
    lane = Lane.objects.get(kind=LaneKind.QUEUE, number=0)
    plain, forwarding = two(kind=Kind.QUEUE, lane=lane, queue_group=0)
    found = read_headers(fetch(statement("read_groups"), parameters(lane)))
    assert found == {plain.pk: None, forwarding.pk: {"x-a": "1"}}


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["replyto", "inturn-replied-message", "traceparent"])
def test_every_lane_reads_the_headers_of_messages_with_a_reply_or_a_trace(name: str) -> None:
    queue = Lane.objects.get(kind=LaneKind.QUEUE, number=0)
    by_priority = factories.subscriber(processing="CONCURRENT", by_priority=True)
    rows = {
        "read_runs": wanting(name, subscriber=factories.subscriber()),
        "read_due": wanting(name, lane=Lane.objects.get(kind=LaneKind.RETRY)),
        "read_groups": wanting(name, kind=Kind.QUEUE, lane=queue, queue_group=0),
        "read_by_priority": wanting(name, subscriber=by_priority, priority=4),
    }
    found = {
        "read_runs": fetch(
            statement("read_runs"),
            run_parameters(rows["read_runs"].subscription.subscriber.lane.pk),
        ),
        "read_due": read_due(LaneKind.RETRY),
        "read_groups": fetch(statement("read_groups"), parameters(queue)),
        "read_by_priority": fetch(
            statement("read_by_priority"), priority_parameters(by_priority, 8)
        ),
    }
    for way, row in rows.items():
        assert read_headers(found[way]) == {row.subscription_id: {name: "Quote.Made"}}, way


def test_the_address_for_a_reply_has_the_token_of_the_delivery() -> None:
    to, now = endpoint("http://127.0.0.1/"), datetime.now(UTC)
    wanting_reply = replace(PARCEL, headers={"replyto": "Quote.Made"})
    token = make_token(PARCEL.delivery_id, key=reply_key(settings.SECRET_KEY))
    plain = make_request(PARCEL, to, now=now).headers
    sent = make_request(wanting_reply, to, now=now).headers
    assert sent == plain | {"inturn-reply": f"{settings.ENVIRONMENT.base_url}/replies/{token}"}
    # Neither a replay nor an answer to a callback asks for replies.
    for other in ({"replay_id": 7}, {"event": "Inturn.Callback"}):
        made = make_request(replace(wanting_reply, **other), to, now=now)
        assert "inturn-reply" not in made.headers


def test_a_reply_names_its_message_without_forward_headers() -> None:
    said = {"inturn-replied-message": "msg_1", "inturn-replied-delivery": "2"}
    reply = replace(PARCEL, headers={"x-a": "1"} | said)
    sent = make_request(reply, endpoint("http://127.0.0.1/"), now=datetime.now(UTC)).headers
    assert said.items() <= sent.items()
    assert not {"x-a", "inturn-reply"} & sent.keys()


def wanting(
    name: str, *, subscriber: Any = None, kind: Kind = Kind.TOPIC, **fields: Any
) -> Delivery:
    """Create a delivery of a message with that header, to a subscription that forwards none."""
    event_type = factories.event_type(kind=kind)
    row = factories.subscription(subscriber=subscriber, event_type=event_type)
    message = factories.message(event_type=event_type, headers={name: "Quote.Made"})
    return factories.delivery(subscription=row, message=message, **fields)


def two(*, subscriber: Any = None, kind: Kind = Kind.TOPIC, **fields: Any) -> list[Subscription]:
    """Create two subscriptions with a delivery each, of which the second forwards all headers."""
    made = []
    for patterns in ([], ["*"]):
        event_type = factories.event_type(kind=kind)
        row = factories.subscription(
            subscriber=subscriber, event_type=event_type, forward_headers=patterns
        )
        message = factories.message(event_type=event_type, headers={"x-a": "1"})
        factories.delivery(subscription=row, message=message, **fields)
        made.append(row)
    return made


def read_headers(rows: list[dict[str, Any]]) -> dict[int, Any]:
    return {row["subscription_id"]: row["headers"] and orjson.loads(row["headers"]) for row in rows}
