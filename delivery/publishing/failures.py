"""Publishes a message of the event type `Inturn.Delivery.Failed` for each settled failure.

The settling transaction of a failure also stores a notice (`delivery.models.failure_notice`); the
transaction that stores the message here deletes it. So each failure is published once, whichever
process dies in between. `maintenance/README.md` says who receives it, and how QUEUE groups report
only their end.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from delivery.database import queries
from delivery.models import JournalEntry, JournalKind, Message, PendingFailure, Status
from delivery.models.message import public_id
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish_own
from delivery.publishing.stored_messages import Accepted
from delivery.states import FAILURES
from subscriptions.matching.destinations import EVERYBODY, Destination, UnknownDestinationError
from subscriptions.matching.errors_to import FAILED, NOBODY, errors_destination, failed_event_type
from subscriptions.models import EventType
from subscriptions.values.media_types import JSON
from subscriptions.values.names import UNSUBSCRIBABLE

Notice = Mapping[str, Any]


def is_due(_: datetime) -> bool:
    """Return whether `publish_notices` may find something."""
    return queries.is_true("is_notice_due")


def publish_notices(*, limit: int) -> int:
    """Publish the oldest failures and return the number of deleted notices; needs a transaction."""
    return _publish(limit=limit, deliveries=None)


def publish_notices_of(delivery_ids: Collection[int]) -> None:
    """Publish outstanding failures of deliveries; call it in the changing transaction.

    The deliveries are locked from here on: a sender settling a delivery of them now would leave a
    notice to a row without the cause.
    """
    queries.execute_statement("lock_groups", {"delivery": list(delivery_ids)})
    _publish(limit=None, deliveries=list(delivery_ids))


def _publish(*, limit: int | None, deliveries: list[int] | None) -> int:
    """Publish the failures among the notices.

    A delivery settled by a person during the last attempt is not a failure.
    """
    notices = queries.named_rows("take_failures", {"limit": limit, "delivery": deliveries})
    failed = [
        notice
        for notice in map(_with_publisher, notices)
        if notice["status"] in FAILURES and not notice["is_of_group"]
    ]
    _add_pending_failures(failed)
    failed = [
        notice for notice in failed if notice["event"] != FAILED and _errors_to(notice) != NOBODY
    ]
    if failed:
        destination_of = lru_cache(maxsize=None)(_destination)
        event_type = failed_event_type()
        drafts = [_draft(event_type, notice, destination_of) for notice in failed]
        _note_unwanted(failed, drafts, publish_own(drafts))
    return len(notices)


def _add_pending_failures(failed: Sequence[Notice]) -> None:
    """Add a pending failure for each, for `delivery.incidents`.

    IN_DOUBT deliveries have incidents of their own.
    """
    PendingFailure.objects.bulk_create(
        PendingFailure(
            delivery_id=notice["delivery"],
            subscription_id=notice["subscription_id"],
            cause=_cause(notice),
        )
        for notice in failed
        if notice["status"] != Status.IN_DOUBT
    )


def _cause(notice: Notice) -> str:
    """Return the cause to group failures by of a subscription: `410`, `TIMEOUT` or `EXPIRED`."""
    if notice["status"] == Status.EXPIRED:
        return Status.EXPIRED.value
    return str(notice["status_code"] or notice["outcome"] or notice["status"])


def _with_publisher(notice: Notice) -> Notice:
    """Add the original message's publisher to the notice of an edited copy, which has none."""
    original = notice["edited_from_id"]
    while notice["publisher"] is None and original is not None:
        columns = ("publisher__name", "publisher__errors_to", "edited_from_id")
        row = Message.objects.filter(pk=original).values_list(*columns).first()
        # Retention may have removed the original.
        name, errors_to, original = row or (None, None, None)
        notice = {**notice, "publisher": name, "default_errors_to": errors_to}
    return notice


def _errors_to(notice: Notice) -> str:
    """Return the recipient's name; empty means all matching subscriptions."""
    own = None if notice["event"] == UNSUBSCRIBABLE else notice["errors_to"]
    name: str = (notice["default_errors_to"] or "") if own is None else own
    return name


def _destination(name: str) -> Destination | None:
    """Return the named destination, None if it no longer exists."""
    try:
        return errors_destination(name) if name else EVERYBODY
    except UnknownDestinationError:
        return None


def _draft(
    event_type: EventType, notice: Notice, destination_of: Callable[[str], Destination | None]
) -> Draft:
    name = _errors_to(notice)
    to = destination_of(name)
    if to is None:
        text = (
            f"The failure of delivery {notice['delivery']} was to be reported to {name}, "
            "which does not exist any more: published to all matching subscriptions."
        )
        of = {"message_id": notice["message_id"], "delivery_id": notice["delivery"]}
        JournalEntry.objects.create(kind=JournalKind.ERRORS_TO, text=text, **of)
    return Draft(
        event_type=event_type,
        headers=_headers(notice),
        body=orjson.dumps(_body(notice), option=orjson.OPT_UTC_Z),
        content_type=JSON,
        destination=to or EVERYBODY,
    )


def _headers(notice: Notice) -> dict[str, str]:
    """Return the headers; a subscriber's failures have the subscriber's name as FILTER_STRING."""
    headers = {"content-type": JSON, "filter-string": notice["subscriber"]}
    return headers if notice["publisher"] is None else headers | {"publisher": notice["publisher"]}


def _note_unwanted(
    notices: Sequence[Notice], drafts: Sequence[Draft], accepted: Sequence[Accepted]
) -> None:
    """Record in the journal the messages with a named recipient and no matching subscription."""
    for notice, draft, answer in zip(notices, drafts, accepted, strict=True):
        if not answer.deliveries and draft.destination != EVERYBODY:
            text = (
                f"{public_id(answer.message_id)}, the failure of delivery {notice['delivery']}, "
                f"delivered to {draft.destination.name}, matched no subscription there."
            )
            JournalEntry.objects.create(
                kind=JournalKind.UNMATCHED, text=text, message_id=answer.message_id
            )


def _body(notice: Notice) -> dict[str, Any]:
    """Return the body of the failure's message, as in the event type's sample."""
    tried = ("number", "started_at", "duration_ms", "outcome", "status_code", "error")
    return {
        "delivery": notice["delivery"],
        "message": public_id(notice["message_id"]),
        **{name: notice[name] for name in ("event", "publisher", "published_at")},
        "destination": notice["destination"] or None,
        **{
            name: notice[name]
            for name in ("subscriber", "subscription", "status", "attempts", "redelivery")
        },
        # An expired delivery may have no attempt.
        "attempt": {name: notice[name] for name in tried} if notice["number"] is not None else None,
    }
