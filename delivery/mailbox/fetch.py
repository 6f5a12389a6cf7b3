"""Fetches from a mailbox, and their end by receipts.

A fetch leases deliveries by a token, and a receipt ends this fetch. Each execution of a verb's
statement is a commit. `mailbox/README.md` has the states, the races and the crash windows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from django.db import transaction

from delivery.database.queries import planned_rows
from delivery.lifecycle import notifier
from delivery.mailbox import receipts
from delivery.mailbox.receipts import Receipt
from delivery.models import Delivery, OutcomeClass, Status

MOST_AT_ONCE = 100
# The total size of the bodies in an answer. Larger messages make the answer shorter, but it has at
# least one message.
ANSWER_BYTES = 4 * 1024 * 1024
# The number of returned deliveries (lapsed leases; ended delays) read for each subscription; they
# are handed out in the order of their ids.
_LOOK = 1_000
# The number of rows read beyond those requested, at each try: increased when other fetches have
# locked all rows read.
_FURTHER = (0, 10, 100, 1_000)
UNKNOWN = "This is no receipt of a message of this mailbox; send it as `next` gave it."
# The status set by each outcome: a repeated request that finds it finds its own effect.
_DONE = {
    OutcomeClass.ACKNOWLEDGED: Status.DELIVERED,
    OutcomeClass.RELEASED: Status.PENDING,
    OutcomeClass.DECLINED: Status.REJECTED,
}
_Locked: TypeAlias = Mapping[int, tuple[str, int, Any, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedMessage:
    """A message as handed out. `headers` is JSON text."""

    delivery_id: int
    message_id: int
    event: str
    published_at: datetime
    headers: str
    content_type: str
    body: bytes = field(repr=False)
    receive_count: int
    receipt: str
    replay_id: int | None


@dataclass(frozen=True, slots=True)
class ReceiptResult:
    """The result of a receipt.

    `error` is empty if the requested change is now in effect. `is_unknown` is True if the text is
    not a receipt of this mailbox.
    """

    receipt: str
    error: str = ""
    is_unknown: bool = False


def fetch_messages(subscriber_id: int, *, most: int, visibility: int) -> list[LeasedMessage]:
    """Lease up to `most` messages, the oldest first, for `visibility` seconds; commits the lease.

    Returns fewer if the bodies are large or if other clients fetch at the same moment: they may
    briefly lock rows without taking them, and the mailbox then appears to hold less than it does.
    """
    wanted = {
        "subscriber": subscriber_id,
        "most": most,
        "visibility": visibility,
        "look": _LOOK,
        "bytes": ANSWER_BYTES,
    }
    for further in _FURTHER:
        (seen, *row), *rest = planned_rows("fetch", wanted | {"reach": most + further})
        if row[0] is not None:
            return [_fetched(*row), *(_fetched(*columns) for _, *columns in rest)]
        if not seen:
            break
    return []


def acknowledge_receipts(subscriber_id: int, texts: Sequence[str]) -> list[ReceiptResult]:
    """Settle the deliveries of these receipts as DELIVERED; idempotent."""
    return _end(subscriber_id, texts, OutcomeClass.ACKNOWLEDGED)


def reject_receipts(subscriber_id: int, texts: Sequence[str]) -> list[ReceiptResult]:
    """Settle the deliveries of these receipts as REJECTED, a reported failure."""
    return _end(subscriber_id, texts, OutcomeClass.DECLINED)


def release_receipts(
    subscriber_id: int, texts: Sequence[str], *, delay: int
) -> list[ReceiptResult]:
    """Return the deliveries of these receipts to the mailbox, available after `delay` seconds.

    A delivery without further fetches becomes FAILED.
    """
    results = _end(subscriber_id, texts, OutcomeClass.RELEASED, delay=delay)
    if not delay and not all(result.error for result in results):
        transaction.on_commit(lambda: notifier.notify_of_messages([subscriber_id]))
    return results


def extend_receipts(
    subscriber_id: int, texts: Sequence[str], *, visibility: int
) -> list[ReceiptResult]:
    """Extend the leases of these receipts to `visibility` seconds from now."""
    read = _read(texts)
    deliveries = _locked("extend", subscriber_id, read, {"visibility": visibility})
    return [_result(text, receipt, deliveries) for text, receipt in read]


def fetched_delivery(subscriber_id: int, text: str) -> int | None:
    """Return the delivery fetched from this mailbox with a receipt; None for other texts.

    The fetch may have ended, in whatever way.
    """
    receipt = receipts.parse_receipt(text)
    if receipt is None:
        return None
    return (
        Delivery.objects.filter(
            pk=receipt.delivery_id,
            subscription__subscriber=subscriber_id,
            receive_count__gte=receipt.number,
        )
        .values_list("pk", flat=True)
        .first()
    )


def _fetched(*columns: Any) -> LeasedMessage:
    (
        id,
        message_id,
        event,
        published_at,
        headers,
        content_type,
        body,
        receive_count,
        token,
        replay_id,
    ) = columns
    return LeasedMessage(
        delivery_id=id,
        message_id=message_id,
        event=event,
        published_at=published_at,
        headers=headers,
        content_type=content_type,
        body=body,
        receive_count=receive_count,
        receipt=str(Receipt(id, receive_count, token)),
        replay_id=replay_id,
    )


def _end(
    subscriber_id: int, texts: Sequence[str], outcome: OutcomeClass, *, delay: int = 0
) -> list[ReceiptResult]:
    read = _read(texts)
    deliveries = _locked(
        "end_fetches", subscriber_id, read, {"outcome": outcome.value, "delay": delay}
    )
    return [_result(text, receipt, deliveries, outcome=outcome) for text, receipt in read]


def _read(texts: Sequence[str]) -> list[tuple[str, Receipt | None]]:
    return [(text, receipts.parse_receipt(text)) for text in texts]


def _locked(
    name: str,
    subscriber_id: int,
    read: Sequence[tuple[str, Receipt | None]],
    columns: Mapping[str, object],
) -> _Locked:
    """Execute the statement; return status, receive count, token and last outcome by delivery id.

    Executes it a second time for the deliveries not found: if another request settled a delivery
    while the statement waited for the lock, the statement saw the row in neither part of the table.
    """
    deliveries: dict[int, tuple[str, int, Any, str | None]] = {}
    for _ in range(2):
        missing = [
            receipt
            for _, receipt in read
            if receipt is not None and receipt.delivery_id not in deliveries
        ]
        if not missing:
            break
        named = {
            "subscriber": subscriber_id,
            "delivery": [receipt.delivery_id for receipt in missing],
            "token": [receipt.token for receipt in missing],
        }
        deliveries |= {
            id: tuple(columns_of_row)
            for id, *columns_of_row in planned_rows(name, {**named, **columns})
        }
    return deliveries


def _result(
    text: str, receipt: Receipt | None, deliveries: _Locked, *, outcome: OutcomeClass | None = None
) -> ReceiptResult:
    if receipt is None or receipt.delivery_id not in deliveries:
        return ReceiptResult(text, UNKNOWN, is_unknown=True)
    status, count, token, ended = deliveries[receipt.delivery_id]
    is_repeated = outcome is not None and (ended == outcome or status == _DONE[outcome])
    if token == receipt.token or (count == receipt.number and is_repeated):
        return ReceiptResult(text)
    return ReceiptResult(text, _reason_late(status, is_fetched_since=count > receipt.number))


def _reason_late(status: str, *, is_fetched_since: bool) -> str:
    is_open = status in (Status.PENDING, Status.IN_FLIGHT)
    if is_fetched_since:
        now = "" if is_open else f", and is {status}"
        return (
            f"Late: its visibility ended, it was fetched again since{now}. "
            "Only the newest receipt counts."
        )
    if is_open:
        return "Too late: it is in the mailbox again; fetch it again."
    return f"Late: it is {status} since."
