"""Telling of failures: one message of the event type `Inturn.Delivery.Failed` for each settled failure.

Who settles a failure leaves a notice in the same transaction (`delivery.models.failure_notice`); here the notice goes in the
transaction that stores the message. So each failure is told once, whoever dies in between. What a person reopens or
decides is told first, while its row still says how it failed.

The failure of a delivery that tells of a failure is not told: it would never end.

Whom it is told. A message's header `ErrorsTo`, else its publisher's `errors_to`, names who gets it in place of all who want it, as by
`Destination`; `-` is nobody. The header is stored with the message as any other, so edited copies, replays and what comes back
from the archive have it, and publishing writes nothing more; an answer to a callback is no publisher's, and its header counts for nothing.

    taken ── of a group that goes on, or told once already ──▶ gone
      ├───── to nobody ──────────────────────────────────────▶ gone
      ├───── who is named is there ──▶ delivered there; if nothing there qualifies: journal UNMATCHED
      └───── who is named was deleted ──▶ published as usual; journal ERRORS_TO

Names are looked up when a failure is told, in the transaction that tells it. Who is deleted between that look and the storing of
the message makes the transaction fail, which is repeated with the next look. A crash before the commit leaves the notices.

Of a QUEUE group of which only the end is told two siblings may fail at once. A notice and the settlement that it is of are seen
together or not at all, and all notices are taken by their ids: whose sibling is open in this snapshot leaves it to that one's notice,
whose sibling has a younger notice leaves it to that. So the last one is always told. It is told twice only if a
person acts on the younger before the older is taken.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from delivery.database import queries
from delivery.models import JournalEntry, JournalKind, Message
from delivery.models.message import public_id
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import Accepted, publish_own
from delivery.states import FAILURES
from subscriptions.matching.destinations import EVERYBODY, Destination, UnknownDestinationError
from subscriptions.matching.errors_to import FAILED, NOBODY, errors_destination, failed_event_type
from subscriptions.models import EventType
from subscriptions.values.media_types import JSON
from subscriptions.values.names import UNSUBSCRIBABLE

Notice = Mapping[str, Any]


def tell(*, limit: int) -> int:
    """Tell the oldest failures, and return how many notices are gone. Call it in a transaction."""
    return _tell(limit=limit, deliveries=None)


def tell_of(delivery_ids: Collection[int]) -> None:
    """Tell the failures of these deliveries that are not told yet. Call it in the transaction that changes them.

    They are locked from here on: a sender that settles one of them now would leave its notice to a row that has
    forgotten how it failed.
    """
    queries.execute("lock_groups", {"delivery": list(delivery_ids)})
    _tell(limit=None, deliveries=list(delivery_ids))


def _tell(*, limit: int | None, deliveries: list[int] | None) -> int:
    """Tell what is a failure: what a person settled while its last attempt was under way is none."""
    notices = queries.named_rows("take_failures", {"limit": limit, "delivery": deliveries})
    told = [
        notice
        for notice in map(_with_publisher, notices)
        if notice["status"] in FAILURES and notice["event"] != FAILED and not notice["is_of_group"]
    ]
    told = [notice for notice in told if _errors_to(notice) != NOBODY]
    if told:
        found = lru_cache(maxsize=None)(_found)
        event_type = failed_event_type()
        drafts = [_draft(event_type, notice, found) for notice in told]
        _note_unwanted(told, drafts, publish_own(drafts))
    return len(notices)


def _with_publisher(notice: Notice) -> Notice:
    """An edited copy has no publisher of its own: who published what was edited first is told."""
    original = notice["edited_from_id"]
    while notice["publisher"] is None and original is not None:
        columns = ("publisher__name", "publisher__errors_to", "edited_from_id")
        row = Message.objects.filter(pk=original).values_list(*columns).first()
        # Retention may have removed it.
        name, errors_to, original = row or (None, None, None)
        notice = {**notice, "publisher": name, "default_errors_to": errors_to}
    return notice


def _errors_to(notice: Notice) -> str:
    """Return whom it is told: empty is all who want it."""
    own = None if notice["event"] == UNSUBSCRIBABLE else notice["errors_to"]
    name: str = (notice["default_errors_to"] or "") if own is None else own
    return name


def _found(name: str) -> Destination | None:
    """Return who is named, None for who is not there any more."""
    try:
        return errors_destination(name) if name else EVERYBODY
    except UnknownDestinationError:
        return None


def _draft(event_type: EventType, notice: Notice, found: Callable[[str], Destination | None]) -> Draft:
    name = _errors_to(notice)
    to = found(name)
    if to is None:
        text = f"The failure of delivery {notice['delivery']} was to be told to {name}, which cannot be told any more: published."
        of = {"message_id": notice["message_id"], "delivery_id": notice["delivery"]}
        JournalEntry.objects.create(kind=JournalKind.ERRORS_TO, text=text, **of)
    return Draft(
        event_type=event_type,
        headers=_headers(notice),
        body=orjson.dumps(_told(notice), option=orjson.OPT_UTC_Z),
        content_type=JSON,
        destination=to or EVERYBODY,
    )


def _headers(notice: Notice) -> dict[str, str]:
    """Subscribers wait for what concerns themselves: their name finds it, without a filter."""
    headers = {"content-type": JSON, "filter-string": notice["subscriber"]}
    return headers if notice["publisher"] is None else headers | {"publisher": notice["publisher"]}


def _note_unwanted(told: Sequence[Notice], drafts: Sequence[Draft], accepted: Sequence[Accepted]) -> None:
    """Write down what was told to somebody by name, and came to nobody."""
    for notice, draft, answer in zip(told, drafts, accepted, strict=True):
        if not answer.deliveries and draft.destination != EVERYBODY:
            text = (
                f"Nobody wants {public_id(answer.message_id)}, the failure of delivery {notice['delivery']}, which was "
                f"delivered to {draft.destination.name}: no subscription there qualifies."
            )
            JournalEntry.objects.create(kind=JournalKind.UNMATCHED, text=text, message_id=answer.message_id)


def _told(notice: Notice) -> dict[str, Any]:
    """What is told of a failure: as the event type's sample shows it."""
    tried = ("number", "started_at", "duration_ms", "outcome", "status_code", "error")
    return {
        "delivery": notice["delivery"],
        "message": public_id(notice["message_id"]),
        **{name: notice[name] for name in ("event", "publisher", "published_at")},
        "destination": notice["destination"] or None,
        **{name: notice[name] for name in ("subscriber", "subscription", "status", "attempts", "redelivery")},
        # What expired may never have been tried.
        "attempt": {name: notice[name] for name in tried} if notice["number"] is not None else None,
    }
