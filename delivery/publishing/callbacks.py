"""Callbacks: a QUEUE message's endpoint answers later, and the publisher's URL gets the answer.

    published with CallbackURL ─▶ WAITING ─┬─ the endpoint posts ─▶ ANSWERED
                                           └─ days pass ──────────▶ EXPIRED

The callback is stored in the transaction of the message. A post is one statement: either the answer
becomes a message with a delivery in the callback lane, and the callback is ANSWERED, or nothing
happens. Of several posts at once the first changes the row, and the others wait for it. An endpoint
without our 202, because we or the network failed after the commit, posts the same again and gets
the same answer; another body is refused.

An answer may carry another `CallbackURL`: the answer's delivery then brings a new callback. So does
a message whose `CallbackURL` is a callback of this installation. Either way the chain grows by a
hop, and ends at MAX_HOPS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson
from django.conf import settings
from django.db import transaction

from delivery.database import queries
from delivery.lifecycle import notifier
from delivery.models import Callback
from delivery.models.lane import CALLBACK_EVENT_TYPE
from delivery.publishing.callback_tokens import callback_key, read_token
from delivery.publishing.callback_urls import CallbackRefusedError, CallbackTarget, callback_target
from subscriptions.models import EventType, Kind, Policy, Subscriber, Subscription
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.values.times import time_text

SUBSCRIBER = "Inturn.Callbacks"
SUBSCRIPTION = "callbacks"
# Never called: each delivery has a callback URL.
NO_ENDPOINT = "https://callback.invalid/"

State = Literal["WAITING", "ANSWERED", "EXPIRED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackAnswer:
    """The post of an endpoint; header names are lower-case and hyphenated."""

    headers: Mapping[str, str]
    content_type: str
    body: bytes


def add_callbacks(messages: Sequence[tuple[int, CallbackTarget]]) -> None:
    """Store the callbacks of messages by their ids, one a group.

    Call it in the storing transaction of the messages.
    """
    if not messages:
        return
    columns: dict[str, Any] = {
        "message": [message_id for message_id, _ in messages],
        "url": [target.url for _, target in messages],
        "hop": [target.hop for _, target in messages],
        "days": settings.ENVIRONMENT.callback_days,
    }
    queries.execute_statement("add_callbacks", columns)


def find_callback(token: str) -> Callback:
    """Return the callback of a token; raise CallbackRefusedError 404.

    A forged token costs no query.
    """
    callback_id = read_token(token, key=callback_key(settings.SECRET_KEY))
    callback = Callback.objects.filter(pk=callback_id).first() if callback_id is not None else None
    if callback is None:
        raise CallbackRefusedError(
            "There is no such callback; use the CallbackURL unchanged.", status=404
        )
    return callback


def refuse_expired(callback: Callback, *, now: datetime) -> None:
    """Raise CallbackRefusedError 410 if it is too late for any answer."""
    if callback_state(callback, now=now) == "EXPIRED":
        raise CallbackRefusedError(
            f"This callback could be answered until {time_text(callback.expires_at)}.",
            status=410,
        )


def answer_callback(callback: Callback, received: CallbackAnswer, *, now: datetime) -> int:
    """Store the answer with a delivery and return the message's id.

    A repetition gets the same id. When it returns, everything is on disk and the senders are
    notified. Raises CallbackRefusedError: 409 if it has another answer, 410 if it expired, 400 for
    an impossible `CallbackURL`.
    """
    if callback.answer_id is None:
        following = callback_target(received.headers, hops=callback.hop)
        if (message_id := _store(callback, received, following)) is not None:
            return message_id
        callback.refresh_from_db()
    return _answered(callback, received, now=now)


def callback_state(callback: Callback, *, now: datetime) -> State:
    if callback.answered_at is not None:
        return "ANSWERED"
    return "WAITING" if callback.expires_at > now else "EXPIRED"


def _answered(callback: Callback, received: CallbackAnswer, *, now: datetime) -> int:
    if callback.answer is None:
        refuse_expired(callback, now=max(now, callback.expires_at))
    assert callback.answer is not None
    if bytes(callback.answer.body) != received.body:
        raise CallbackRefusedError(
            "This callback was answered already, with another body.", status=409
        )
    return callback.answer.pk


def _store(
    callback: Callback, received: CallbackAnswer, following: CallbackTarget | None
) -> int | None:
    """Return the id of the message, None if the callback can no longer be answered."""
    # A single statement is a transaction by itself: no BEGIN, no COMMIT.
    row = queries.first_row(
        "answer_callback",
        {
            "callback": callback.pk,
            "subscription": _subscription_id(),
            "headers": orjson.dumps(dict(received.headers)).decode(),
            "content_type": received.content_type,
            "body": received.body,
            "next_url": following.url if following else None,
            "next_hop": following.hop if following else None,
            "days": settings.ENVIRONMENT.callback_days,
        },
    )
    if row is None:
        return None
    message_id: int
    message_id, lane_id = row
    notifier.notify_of_work([lane_id])
    return message_id


def _subscription_id() -> int:
    """Return the id of the subscription for the deliveries of answers, created on first use.

    Two processes creating it at once meet at the unique names, and the later uses the row of the
    earlier.
    """
    subscriptions = Subscription.objects.filter(subscriber__name=SUBSCRIBER, name=SUBSCRIPTION)
    return subscriptions.values_list("pk", flat=True).first() or _make_subscription().pk


def _make_subscription() -> Subscription:
    with transaction.atomic():
        event_type, _ = EventType.objects.get_or_create(
            name=CALLBACK_EVENT_TYPE,
            defaults={
                "kind": Kind.TOPIC,
                "content_type": "application/octet-stream",
                "description": "Answers of endpoints to QUEUE messages, by callback.",
            },
        )
        subscriber, _ = Subscriber.objects.get_or_create(
            name=SUBSCRIBER,
            defaults={
                "description": (
                    "Represents the publishers that requested a callback: "
                    "each answer has its own URL."
                )
            },
        )
        subscription, _ = Subscription.objects.get_or_create(
            subscriber=subscriber,
            name=SUBSCRIPTION,
            defaults={
                "event_type": event_type,
                "endpoint": NO_ENDPOINT,
                "policy": Policy.objects.get(name=DEFAULT_POLICY),
            },
        )
    return subscription
