"""A test message: sent to a subscription's endpoint at once, to show a person the answer.

It is sent like a message, by the same client: with the output of the subscription's script, signed
with all valid secrets, with the subscription's headers and credentials; `inturn-test: true` marks
it. The outcome is that of a message, too: only the answer of a SYNC subscription must be whole. But
it is not a message: no message and no delivery is stored, and no lane is involved, so the
subscriber's order is untouched, and the health of the URL is not counted. The `webhook-id`, by
which receivers recognise repetitions, is from the sequence of messages, so no message ever has the
same id.

The journal gets an entry before the endpoint is called, and the answer is added afterwards: the
entry left by a crash in between reports a possibly sent message.

A call blocks a web thread: only few may wait at a time, and not for long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from delivery.calls.http import Called, call_as_sender, call_for_answer
from delivery.calls.script_runs import answer_by_script, transformed_now
from delivery.calls.slots import call_slot, current_endpoint
from delivery.lifecycle import journal
from delivery.models import JournalKind
from delivery.models.message import public_id
from delivery.outcome import script_failed
from delivery.senders.http.request import Request, make_request
from delivery.senders.parcel import Endpoint, Parcel
from subscriptions.models import Kind, Subscription
from subscriptions.values.endpoints import INTERNAL

TEST_HEADER = "inturn-test"
LONGEST_WAIT_SECONDS = 15.0
# It is no delivery.
_NO_DELIVERY = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A test message; `headers` are sent along as a message's."""

    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """The sent test message and the result."""

    webhook_id: str
    request: Request
    called: Called


def send_test(subscription: Subscription, trial: Trial, *, actor: str, now: datetime) -> Tested:
    """Send it and wait for the answer.

    Raises NoSlotError, and Subscription.DoesNotExist if it has just been deleted.
    """
    # SYNC may have three quarters of the threads, and the console must stay available.
    with call_slot("test", most=settings.ENVIRONMENT.web_threads // 8):
        endpoint = current_endpoint(subscription.pk)
        if endpoint is None:
            raise Subscription.DoesNotExist
        parcel = _parcel(subscription, trial)
        if endpoint.url != INTERNAL:
            parcel = transformed_now(parcel, endpoint, headers=_read_headers(parcel))
        request = _request(parcel, endpoint, now=now)
        text = f"{public_id(parcel.message_id)} was sent to {subscription} as a test message"
        entry = journal.record_entry(
            JournalKind.TESTED,
            f"{text}; no answer is recorded.",
            actor=actor,
            subscription_id=subscription.pk,
        )
        called = _called(request, kind=subscription.event_type.kind)
        entry.text = f"{text}: {called.outcome.reason}, after {called.outcome.duration_ms} ms."
        entry.save(update_fields=["text"])
    return Tested(webhook_id=public_id(parcel.message_id), request=request, called=called)


def _called(request: Request, *, kind: str) -> Called:
    """Call the endpoint, or have the script answer; nothing is sent if the script failed."""
    if request.endpoint.url == INTERNAL:
        headers = _read_headers(request.parcel)
        return answer_by_script(
            request.parcel, request.endpoint, headers=headers, now=request.made_at
        )
    transformation = request.parcel.transformation
    if transformation is not None and transformation.fault:
        return Called(script_failed(transformation.fault, now=request.made_at))
    return call_for_answer(request) if kind == Kind.SYNC else call_as_sender(request)


def _read_headers(parcel: Parcel) -> dict[str, str]:
    """Return the message's headers as the script reads them."""
    return {**(parcel.headers or {}), TEST_HEADER: "true"}


def _parcel(subscription: Subscription, trial: Trial) -> Parcel:
    return Parcel(
        delivery_id=_NO_DELIVERY,
        subscription_id=subscription.pk,
        message_id=_unused_message_id(),
        attempts=0,
        attempts_before=0,
        is_skipped=False,
        redelivery="",
        event=subscription.event_type.name,
        content_type=trial.content_type,
        body=trial.body,
        headers=trial.headers,
    )


def _request(parcel: Parcel, endpoint: Endpoint, *, now: datetime) -> Request:
    patient = replace(endpoint, timeout_seconds=min(endpoint.timeout_seconds, LONGEST_WAIT_SECONDS))
    request = make_request(parcel, patient, now=now)
    return replace(request, headers=request.headers | {TEST_HEADER: "true"})


def _unused_message_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('delivery_message', 'id'))")
        row: tuple[Any, ...] = cursor.fetchone()
    message_id: int = row[0]
    return message_id
