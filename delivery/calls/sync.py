"""SYNC: one subscription is called while the publisher waits, and its answer is the publisher's.

What is stored, and when. First the message and its delivery are committed, the delivery as IN_DOUBT: from then on
the endpoint may have been called. Then it is called, once. Then the answer is recorded, and settles the delivery:

    IN_DOUBT ──▶ DELIVERED (2xx) │ REJECTED (4xx) │ 3xxNOTSUPPORTED │ FAILED (5xx, or no answer)

- A crash before the commit leaves nothing, and nobody was called. One after it leaves the truth: IN_DOUBT without an
  attempt, told as a failure a while later. Nothing is sent again by itself, for the publisher has gone without its answer; a person decides.
- When the answer cannot be recorded, because the database is away, the publisher gets it all the same: the call
  has been made. The delivery stays IN_DOUBT, and the log tells of it.
- A person may decide a delivery whose call is still under way. That decision stays; the attempt is recorded beside it.
- A subscription that is deleted between matching and storing makes the whole be matched again. One that gets another
  endpoint at that moment may still be called as it was.
- A subscription that is HELD, by itself, by its subscriber or with all sending, is not called: it gives no answer.
- The script of a subscription with the endpoint `webr://` answers in the same way: it is executed once, after the commit.
- A publisher that hangs up does not end the call: its answer is recorded.

The thread of the web server that waits is lost to others, so only some of them may.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.conf import settings
from django.db import Error, IntegrityError, InterfaceError, OperationalError, connection
from django.utils import timezone

from delivery.calls.http import Called
from delivery.calls.scripted import respond
from delivery.calls.slots import call_now, endpoint_now, turn
from delivery.database.queries import first_row
from delivery.outcome import Outcome, unsendable
from delivery.publishing.drafts import Draft, checked_draft
from delivery.publishing.publish import deleted
from delivery.senders.parcel import Endpoint, Parcel
from delivery.senders.request import make_request
from delivery.states import FAILURES, OutcomeClass, Status
from subscriptions.filters import document
from subscriptions.matching.match import by_position, candidates, qualifying
from subscriptions.models import Publisher, Subscription
from subscriptions.values.endpoints import INTERNAL

log = logging.getLogger(__name__)

HELD = "HELD: it was not called"
UNRECORDED = "called, and no answer is recorded"
# So long after the time-out no answer will be recorded any more: then it is told that it is in doubt.
RECORDING_SECONDS = 30

_STATUSES = {
    OutcomeClass.SUCCESS: Status.DELIVERED,
    OutcomeClass.CLIENT_ERROR: Status.REJECTED,
    OutcomeClass.RATE_LIMITED: Status.REJECTED,
    OutcomeClass.REDIRECT: Status.UNSUPPORTED,
}
# Of these the endpoint gave no answer, or not all of it.
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
    """A SYNC message that is stored, and what came of the call; without `called` nobody wanted it."""

    message_id: int
    subscription: Subscription | None = None
    called: Called | None = None
    is_held: bool = False

    @property
    def is_let_pass(self) -> bool:
        """Whether the publisher is to go on as if nobody had wanted it."""
        if self.subscription is None or self.called is None:
            return True
        return self.subscription.lets_pass_on_timeout and self.called.outcome.outcome in UNANSWERED


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """Whom a message is put to."""

    subscription: Subscription
    endpoint: Endpoint


def exchange(publisher: Publisher, draft: Draft, *, credential: str = "") -> Exchange:
    """Store the draft, of a SYNC event type, call the first subscription that qualifies, and return its answer.

    The `credential` is handed on as Authorization if the subscription wants it, and never stored.
    Raises PublishRefusedError for a draft that is not acceptable, and NoSlotError; then nothing is stored.
    """
    draft = checked_draft(draft)
    # An endpoint that hangs must not stop the web server.
    with turn("sync", most=settings.ENVIRONMENT.web_threads * 3 // 4):
        message_id, delivery_id, asked = _store(publisher, draft)
        if asked is None:
            return Exchange(message_id=message_id)
        parcel = _parcel(draft, asked, message_id=message_id, delivery_id=delivery_id)
        is_held = not asked.endpoint.is_active
        called = (
            Called(unsendable(HELD, now=timezone.now()))
            if is_held
            else _call(parcel, asked.endpoint, draft.headers, credential=credential)
        )
        _record(delivery_id, called.outcome)
    return Exchange(message_id=message_id, subscription=asked.subscription, called=called, is_held=is_held)


def _call(parcel: Parcel, endpoint: Endpoint, headers: Mapping[str, str], *, credential: str) -> Called:
    """Call the endpoint, or have the subscription's script answer, which is not told the credential."""
    if endpoint.url == INTERNAL:
        return respond(parcel, endpoint, headers=headers, now=timezone.now())
    request = make_request(parcel, endpoint, now=timezone.now())
    if credential and endpoint.forwards_authorization:
        request = replace(request, headers=request.headers | {"Authorization": credential})
    return call_now(request)


def _store(publisher: Publisher, draft: Draft) -> tuple[int, int, SyncTarget | None]:
    """Return the ids of the message and of its delivery, and whom to call; nobody, and the delivery is none."""
    try:
        return _store_matched(publisher, draft)
    except IntegrityError:
        # A subscription was deleted between matching and storing: match again.
        return _store_again(publisher, draft)


def _store_again(publisher: Publisher, draft: Draft) -> tuple[int, int, SyncTarget | None]:
    try:
        return _store_matched(publisher, draft)
    except IntegrityError:
        refused = deleted(publisher, [draft])
        if refused is None:
            raise
        raise refused from None


def _store_matched(publisher: Publisher, draft: Draft) -> tuple[int, int, SyncTarget | None]:
    qualified = _qualified(draft)
    asked = _first_there(qualified)
    row = first_row(
        "accept_sync",
        {
            "event_type": draft.event_type.pk,
            "publisher": publisher.pk,
            "headers": orjson.dumps(dict(draft.headers)).decode(),
            "content_type": draft.content_type,
            "body": draft.body,
            "destination": draft.destination.name,
            "subscription": asked and asked.subscription.pk,
            "qualified": [str(subscription) for subscription in qualified],
            "reason": UNRECORDED,
            "seconds": asked and asked.endpoint.timeout_seconds + RECORDING_SECONDS,
        },
    )
    if row is None:
        raise IntegrityError("the subscription has just been deleted")
    return row[0], row[1] or 0, asked


def _qualified(draft: Draft) -> list[Subscription]:
    """Return all that qualify, the one to be called first."""
    seen = document(draft.headers, draft.body)
    found = candidates(draft.event_type, [draft.headers])
    matches = qualifying(found, seen, by_subscriber=False, to=draft.destination)
    return by_position([match.subscription_id for match in matches])


def _first_there(qualified: Sequence[Subscription]) -> SyncTarget | None:
    """Return the first, but for what was deleted since."""
    for subscription in qualified:
        if (endpoint := endpoint_now(subscription.pk)) is not None:
            return SyncTarget(subscription, endpoint)
    return None


def _parcel(draft: Draft, asked: SyncTarget, *, message_id: int, delivery_id: int) -> Parcel:
    return Parcel(
        delivery_id=delivery_id,
        subscription_id=asked.subscription.pk,
        message_id=message_id,
        attempts=0,
        attempts_before=0,
        is_skipped=False,
        redelivery="",
        event=draft.event_type.name,
        content_type=draft.content_type,
        body=draft.body,
        headers=draft.headers if asked.endpoint.forward_headers else None,
    )


def _record(delivery_id: int, outcome: Outcome) -> None:
    """Settle the delivery by what happened; if that cannot be recorded, say so in the log and go on."""
    parameters = _recorded(delivery_id, outcome)
    try:
        try:
            row = first_row("settle_sync", parameters)
        except (OperationalError, InterfaceError):
            # The connection may have died while the endpoint was thinking; the database need not have.
            connection.close()
            row = first_row("settle_sync", parameters)
    except Error:
        log.exception("answer to a SYNC call not recorded", extra={"delivery": delivery_id})
        return
    if row is None:
        log.warning("answer to a SYNC call was recorded before", extra={"delivery": delivery_id})


def _recorded(delivery_id: int, outcome: Outcome) -> dict[str, Any]:
    status = _STATUSES.get(outcome.outcome, Status.FAILED)
    return {
        "delivery": delivery_id,
        "status": status.value,
        "reason": outcome.reason,
        "is_failure": status in FAILURES,
        "started_at": outcome.started_at,
        "duration_ms": outcome.duration_ms,
        "outcome": outcome.outcome.value,
        "status_code": outcome.status_code,
        "error": outcome.error,
        "excerpt": outcome.excerpt,
    }
