"""A mailbox: what a subscriber's PULL subscriptions keep for it until it is fetched and acknowledged.

A delivery in a mailbox is PENDING (available, or put off until `next_attempt_at`) or IN_FLIGHT: leased to
whoever fetched it last, by a token, until its visibility ends. Nothing happens then: the row is as it was, and counts
as available, until the next fetch gives it a token of its own.

             ┌───── released ─────┐            ┌──▶ DELIVERED  acknowledged
             ▼                    │            │
    publish ▶ PENDING ── fetch ─▶ IN_FLIGHT ───┼──▶ REJECTED   rejected
                                  │      ▲     ├──▶ FAILED     released as often as may be, or VOLATILE
                                  └ fetch┘     └──▶ EXPIRED, FAILED, CANCELLED  (expiry duty, a person)
                              after visibility

Two at once. Two fetches never wait for each other and never take the same row: each skips what another has
locked. A receipt ends a fetch exactly if its token is the row's when that is locked: so of a late acknowledgement and a second
fetch the one that locks first wins, and the other is told so. Requests that end fetches lock their rows in the order of
ids, and count only after that, so none of them waits for another in a circle.

Crashes. Each verb is one statement and one commit. A fetch that was committed and whose answer got lost is a lease that nobody
ends: the message comes back after its visibility, with a higher receive count. An acknowledgement whose answer got lost is
repeated: the second finds the delivery DELIVERED by that very fetch, and is told yes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from django.db import transaction

from delivery.database.queries import planned_rows
from delivery.lifecycle import wake
from delivery.mailbox import receipts
from delivery.mailbox.receipts import Receipt
from delivery.models import OutcomeClass, Status

MOST_AT_ONCE = 100
# Bodies in one answer: of larger messages fewer are handed out, but one at least.
ANSWER_BYTES = 4 * 1024 * 1024
# What came back is handed out in the order of ids, among so many that came back first in a subscription.
_LOOK = 1_000
# How much further than what is wanted to look, each time when others have all that was seen.
_FURTHER = (0, 10, 100, 1_000)
_UNKNOWN = "This is no receipt of a message of this mailbox; send it as `next` gave it."
# What a receipt that is repeated finds: its own doing.
_DONE = {
    OutcomeClass.ACKNOWLEDGED: Status.DELIVERED,
    OutcomeClass.RELEASED: Status.PENDING,
    OutcomeClass.DECLINED: Status.REJECTED,
}
_Found: TypeAlias = Mapping[int, tuple[str, int, Any, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedMessage:
    """One message as it is handed out. `headers` is JSON text."""

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
class Result:
    """What became of one receipt; `error` is empty if what was asked for is so now. Unknown is what is no receipt of the mailbox."""

    receipt: str
    error: str = ""
    is_unknown: bool = False


def fetch(subscriber_id: int, *, most: int, visibility: int) -> list[LeasedMessage]:
    """Hand out up to `most` messages, the oldest first, for `visibility` seconds; the lease is committed.

    Fewer when their bodies are large, or others fetch at the same moment: they may have locked for a moment what they
    leave, and then there seems to be less than there is.
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


def acknowledge(subscriber_id: int, texts: Sequence[str]) -> list[Result]:
    """Settle what these receipts are of as DELIVERED. Saying so again changes nothing and is well."""
    return _end(subscriber_id, texts, OutcomeClass.ACKNOWLEDGED)


def reject(subscriber_id: int, texts: Sequence[str]) -> list[Result]:
    """Settle what these receipts are of as REJECTED: a failure that is told."""
    return _end(subscriber_id, texts, OutcomeClass.DECLINED)


def release(subscriber_id: int, texts: Sequence[str], *, delay: int) -> list[Result]:
    """Put back what these receipts are of, to be fetched after `delay` seconds; FAILED if it may not be fetched again."""
    results = _end(subscriber_id, texts, OutcomeClass.RELEASED, delay=delay)
    if not delay and not all(result.error for result in results):
        transaction.on_commit(lambda: wake.mailboxes([subscriber_id]))
    return results


def extend(subscriber_id: int, texts: Sequence[str], *, visibility: int) -> list[Result]:
    """Let what these receipts are of stay out for so many seconds from now."""
    read = _read(texts)
    found = _locked("extend", subscriber_id, read, {"visibility": visibility})
    return [_result(text, receipt, found) for text, receipt in read]


def _fetched(*columns: Any) -> LeasedMessage:
    id, message_id, event, published_at, headers, content_type, body, receive_count, token, replay_id = (
        columns
    )
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


def _end(subscriber_id: int, texts: Sequence[str], outcome: OutcomeClass, *, delay: int = 0) -> list[Result]:
    read = _read(texts)
    found = _locked("end_fetches", subscriber_id, read, {"outcome": outcome.value, "delay": delay})
    return [_result(text, receipt, found, asked=outcome) for text, receipt in read]


def _read(texts: Sequence[str]) -> list[tuple[str, Receipt | None]]:
    return [(text, receipts.parse_receipt(text)) for text in texts]


def _locked(
    name: str,
    subscriber_id: int,
    read: Sequence[tuple[str, Receipt | None]],
    columns: Mapping[str, object],
) -> _Found:
    """Execute the statement; return status, receive count, token and how the last fetch had ended, by the delivery's id.

    Twice for those that it did not find: a delivery that another request settled while the statement waited for its lock
    was then in neither part of the table for it.
    """
    found: dict[int, tuple[str, int, Any, str | None]] = {}
    for _ in range(2):
        missing = [receipt for _, receipt in read if receipt is not None and receipt.delivery_id not in found]
        if not missing:
            break
        named = {
            "subscriber": subscriber_id,
            "delivery": [receipt.delivery_id for receipt in missing],
            "token": [receipt.token for receipt in missing],
        }
        found |= {id: tuple(was) for id, *was in planned_rows(name, {**named, **columns})}
    return found


def _result(
    text: str, receipt: Receipt | None, found: _Found, *, asked: OutcomeClass | None = None
) -> Result:
    if receipt is None or receipt.delivery_id not in found:
        return Result(text, _UNKNOWN, is_unknown=True)
    status, count, token, ended = found[receipt.delivery_id]
    is_repeated = asked is not None and (ended == asked or status == _DONE[asked])
    if token == receipt.token or (count == receipt.number and is_repeated):
        return Result(text)
    return Result(text, _why_late(status, is_fetched_since=count > receipt.number))


def _why_late(status: str, *, is_fetched_since: bool) -> str:
    is_open = status in (Status.PENDING, Status.IN_FLIGHT)
    if is_fetched_since:
        now = "" if is_open else f", and is {status}"
        return f"Late: its visibility ended, it was fetched again since{now}. Only the newest receipt counts."
    if is_open:
        return "Too late: it is in the mailbox again; fetch it again."
    return f"Late: it is {status} since."
