"""SYNC: a subscription is called while the publisher waits, and the answer is the publisher's.

First the message and the delivery are committed, the delivery as IN_DOUBT: from then on the
endpoint may have been called. Then it is called, once. Then the answer is recorded, and settles the
delivery:

    IN_DOUBT ──▶ DELIVERED (2xx) │ REJECTED (4xx) │ 3xxNOTSUPPORTED │ FAILED (5xx, or no answer)

- A rule that says "no" has answered: the 4xx is the publisher's, and no failure. So REJECTED leaves
  no notice, but for statuses of calls which reached no rule (`_NO_ANSWER`).
- A crash before the commit leaves nothing, and the endpoint was not called. A crash after it leaves
  IN_DOUBT without an attempt, which is true, and is reported as a failure a while later. Nothing is
  sent again automatically, because the publisher has gone without an answer; a person decides.
- If the answer cannot be recorded, because the database is away, the publisher still gets it: the
  call has been made. The delivery stays IN_DOUBT, and the log reports it.
- A person may decide a delivery whose call is still under way. The decision stays; the attempt is
  recorded as well.
- If a subscription is deleted between matching and storing, matching starts again. If the endpoint
  changes at this moment, the old endpoint may still be called.
- A subscription HELD by itself, by the subscriber or with all sending is not called: it gives no
  answer.
- The script of a subscription with the endpoint `webr://` answers in the same way: it is executed
  once, after the commit.
- A disconnecting publisher does not end the call: the answer is recorded.

A call blocks a web thread, so only some of the threads may make a call.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.conf import settings
from django.db import Error, IntegrityError, InterfaceError, OperationalError, connection
from django.utils import timezone

from delivery.calls.http import Called, call_for_answer
from delivery.calls.script_runs import answer_by_script
from delivery.calls.slots import call_slot, current_endpoint
from delivery.database.queries import first_row
from delivery.lifecycle.trace_context import TRACEPARENT
from delivery.lifecycle.traces import traces
from delivery.outcome import Outcome, unsendable_outcome
from delivery.publishing.drafts import Draft, checked_draft
from delivery.publishing.publish import refusal_of_deleted
from delivery.publishing.stored_messages import why_unmatched
from delivery.senders.http.request import make_request, traced_attempt
from delivery.senders.parcel import Endpoint, Parcel
from delivery.states import FAILURES, OutcomeClass, Status
from subscriptions.filters import document
from subscriptions.matching.match import (
    candidates,
    qualifying_candidates,
    subscriptions_by_position,
)
from subscriptions.models import Publisher, Subscription
from subscriptions.values.endpoints import INTERNAL

log = logging.getLogger(__name__)

HELD = "HELD: it was not called"
UNRECORDED = "called, and no answer is recorded"
# This long after the time-out no answer will be recorded any more: then IN_DOUBT is reported.
RECORDING_SECONDS = 30

_STATUSES = {
    OutcomeClass.SUCCESS: Status.DELIVERED,
    OutcomeClass.CLIENT_ERROR: Status.REJECTED,
    OutcomeClass.RATE_LIMITED: Status.REJECTED,
    OutcomeClass.REDIRECT: Status.UNSUPPORTED,
}
# Credentials, address, method or rate are wrong: nothing was decided about the message.
_NO_ANSWER = frozenset({401, 404, 405, 407, 408, 410, 415, 429})
# For these the endpoint gave no answer, or not all of it.
UNANSWERED = frozenset(
    {
        OutcomeClass.TIMEOUT,
        OutcomeClass.UNREACHABLE,
        OutcomeClass.TLS,
        OutcomeClass.REFUSED_ADDRESS,
        OutcomeClass.UNSENDABLE,
        OutcomeClass.SCRIPT,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A stored SYNC message and the result of the call.

    Without `called` no subscription qualified.
    """

    message_id: int
    subscription: Subscription | None = None
    called: Called | None = None
    is_held: bool = False

    @property
    def counts_as_unmatched(self) -> bool:
        """True if the publisher is to continue as if no subscription had qualified."""
        if self.subscription is None or self.called is None:
            return True
        return self.subscription.lets_pass_on_timeout and self.called.outcome.outcome in UNANSWERED


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """The subscription and endpoint of a message."""

    subscription: Subscription
    endpoint: Endpoint


def exchange_message(publisher: Publisher, draft: Draft, *, credential: str = "") -> Exchange:
    """Store a SYNC draft, call the first qualifying subscription, and return the answer.

    The `credential` is passed on as Authorization if the subscription requests it, and never
    stored. Raises PublishRefusedError for an unacceptable draft, and NoSlotError; then nothing is
    stored.
    """
    began_ns = time.time_ns()
    draft = checked_draft(draft, publisher=publisher)
    # A hanging endpoint must not stop the web server.
    with call_slot("sync", most=settings.ENVIRONMENT.web_threads * 3 // 4):
        message_id, delivery_id, target = _store(publisher, draft)
        if (tracing := traces()) is not None:
            times = began_ns, time.time_ns()
            tracing.record_publish(message_id, draft.event_type.name, draft.headers, times=times)
        if target is None:
            return Exchange(message_id=message_id)
        parcel = _parcel(draft, target, message_id=message_id, delivery_id=delivery_id)
        is_held = not target.endpoint.is_active
        called = (
            Called(unsendable_outcome(HELD, now=timezone.now()))
            if is_held
            else _call(parcel, target.endpoint, draft.headers, credential=credential)
        )
        if tracing is not None and not is_held:
            tracing.record_attempt(traced_attempt(parcel), called.outcome, phases={})
        is_script = target.endpoint.url == INTERNAL
        _record(delivery_id, called.outcome, is_script=is_script)
    return Exchange(
        message_id=message_id, subscription=target.subscription, called=called, is_held=is_held
    )


def _call(
    parcel: Parcel, endpoint: Endpoint, headers: Mapping[str, str], *, credential: str
) -> Called:
    """Call the endpoint, or have the script answer, which does not get the credential."""
    if endpoint.url == INTERNAL:
        return answer_by_script(parcel, endpoint, headers=headers, now=timezone.now())
    request = make_request(parcel, endpoint, now=timezone.now())
    if credential and endpoint.forwards_authorization:
        request = replace(request, headers=request.headers | {"Authorization": credential})
    return call_for_answer(request)


def _store(publisher: Publisher, draft: Draft) -> tuple[int, int, SyncTarget | None]:
    """Return the ids of the message and the delivery, and the target.

    Without a target there is no delivery.
    """
    try:
        return _store_matched(publisher, draft)
    except IntegrityError:
        # A subscription was deleted between matching and storing: match again.
        return _store_again(publisher, draft)


def _store_again(publisher: Publisher, draft: Draft) -> tuple[int, int, SyncTarget | None]:
    try:
        return _store_matched(publisher, draft)
    except IntegrityError:
        refused = refusal_of_deleted(publisher, [draft])
        if refused is None:
            raise
        raise refused from None


def _store_matched(publisher: Publisher, draft: Draft) -> tuple[int, int, SyncTarget | None]:
    qualified = _qualified(draft)
    target = _first_there(qualified)
    row = first_row(
        "accept_sync",
        {
            "event_type": draft.event_type.pk,
            "publisher": publisher.pk,
            "headers": orjson.dumps(dict(draft.headers)).decode(),
            "content_type": draft.content_type,
            "body": draft.body,
            "destination": draft.destination.name,
            "named": draft.destination.subscription_id,
            "why_not": "" if target else why_unmatched(draft, ()),
            "subscription": target and target.subscription.pk,
            "qualified": [str(subscription) for subscription in qualified],
            "reason": UNRECORDED,
            "seconds": target and target.endpoint.timeout_seconds + RECORDING_SECONDS,
        },
    )
    if row is None:
        raise IntegrityError("the subscription has just been deleted")
    return row[0], row[1] or 0, target


def _qualified(draft: Draft) -> list[Subscription]:
    """Return all qualifying subscriptions without SHADOW, first the subscription to call."""
    seen = document(draft.headers, draft.body)
    subscriptions = candidates(draft.event_type, [draft.headers])
    matches = qualifying_candidates(subscriptions, seen, by_subscriber=False, to=draft.destination)
    return subscriptions_by_position(
        [match.subscription_id for match in matches if not match.is_shadow]
    )


def _first_there(qualified: Sequence[Subscription]) -> SyncTarget | None:
    """Return the first not deleted meanwhile."""
    for subscription in qualified:
        if (endpoint := current_endpoint(subscription.pk)) is not None:
            return SyncTarget(subscription, endpoint)
    return None


def _parcel(draft: Draft, target: SyncTarget, *, message_id: int, delivery_id: int) -> Parcel:
    is_traced = TRACEPARENT in draft.headers
    return Parcel(
        delivery_id=delivery_id,
        subscription_id=target.subscription.pk,
        message_id=message_id,
        attempts=0,
        attempts_before=0,
        is_skipped=False,
        redelivery="",
        event=draft.event_type.name,
        content_type=draft.content_type,
        body=draft.body,
        headers=draft.headers if target.endpoint.forward_headers or is_traced else None,
    )


def _record(delivery_id: int, outcome: Outcome, *, is_script: bool) -> None:
    """Settle the delivery by the outcome; if it cannot be recorded, log it and continue."""
    parameters = _recorded(delivery_id, outcome, is_script=is_script)
    try:
        try:
            row = first_row("settle_sync", parameters)
        except (OperationalError, InterfaceError):
            # The connection may have died during the call, although the database is available.
            connection.close()
            row = first_row("settle_sync", parameters)
    except Error:
        log.exception("answer to a SYNC call not recorded", extra={"delivery": delivery_id})
        return
    if row is None:
        log.warning("answer to a SYNC call was recorded before", extra={"delivery": delivery_id})


def _recorded(delivery_id: int, outcome: Outcome, *, is_script: bool) -> dict[str, Any]:
    status = _STATUSES.get(outcome.outcome, Status.FAILED)
    is_answer = status == Status.REJECTED and (is_script or outcome.status_code not in _NO_ANSWER)
    return {
        "delivery": delivery_id,
        "status": status.value,
        "reason": outcome.reason,
        "is_failure": status in FAILURES and not is_answer,
        "started_at": outcome.started_at,
        "duration_ms": outcome.duration_ms,
        "outcome": outcome.outcome.value,
        "status_code": outcome.status_code,
        "error": outcome.error,
        "excerpt": outcome.excerpt,
    }
