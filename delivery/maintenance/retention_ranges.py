"""Removing a range of messages as a whole: its partitions are dropped, and no row is looked up or deleted one by one.

A range goes when each of its messages may go by the conditions of retention (`kept_in_range.sql`). One that may go
within a day is left alone until then: an hourly pass that removed its first hour, then its second, would never find a
whole range. So rows of such a range are kept up to a day longer. Any other range is gone through row by row.

    ask ─▶ hold the partitions ─▶ ask again ─▶ count, remove callbacks ─▶ drop ─▶ write the pass ─▶ commit
         1                      2            3                          4       5                 6

It is one transaction. A worker killed before the commit has done nothing, and the pass asks again; after it the range is
gone, and the pass has its counts and goes on behind the range.

Races: between 2 and the commit nobody else can change, lock or add a row in the partitions, and nobody makes an open
delivery of a message without that.
- A person reopens, edits or decides a delivery. Committed before 2, it is found by the second question, and the range goes
  row by row. Under way at 2, it has locked a row of a partition: we wait a fifth of a second, and leave the range for
  later. After 2, the person waits, and finds that the delivery is gone.
- A replay makes a delivery of a message of the range: the same, for it locks the message first.
- A sender settles. It does so with open deliveries, which keep the range, or adds an attempt to a delivery that a person
  settled meanwhile: that changes a row of the range.
- A transaction that drew an id of the range long ago inserts its message: before 2 it is found, or we wait for it. After
  the commit the message is stored in the default partition and stays.
- Somebody reads: a page, an export. To drop the partitions waits for them, a fifth of a second, while everybody else waits for
  that. Then it is given up, and later tried again. A page that began before shows the range, and one that begins after does not.
- A snapshot of the history reads in several transactions, and would miss rows that it is to show: a dropped table is gone
  from older snapshots, too. It holds SNAPSHOT_LOCK; while anybody does, nothing is dropped.
- A range that was free to go for a day, and that somebody always uses, goes row by row.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
from django.db import connection
from django.db.models import Min

from delivery.database import queries
from delivery.history.postgres.window import SNAPSHOT_LOCK
from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.maintenance import ranges
from delivery.maintenance.retention_rules import UNMATCHED, RetentionRules
from delivery.models import Message, MessageRange
from delivery.models.delivery import delivery_id

log = logging.getLogger(__name__)

# So much longer rows may stay for their range to be dropped.
LEEWAY = timedelta(days=1)


class _KeptError(Exception):
    """The range cannot go any more."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed with a range: nothing when the range is left for later."""

    messages: int = 0
    deliveries: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """What a pass comes to next: the messages to `last_id`; `whole` is the range that they are, if none is behind it already."""

    last_id: int
    whole: MessageRange | None = None


def section_after(position: int, *, last_id: int) -> Section:
    """Return where the next message behind a position is: in a range, in the rest of one, or in none."""
    next_id = Message.objects.filter(pk__gt=position, pk__lte=last_id).aggregate(Min("id"))["id__min"]
    if next_id is None:
        return Section(last_id)
    its_range = MessageRange.objects.filter(first_id__lte=next_id, until_id__gt=next_id).first()
    if its_range is not None:
        # A pass begins with position 0, and so does the first range: no message has that id.
        whole = its_range if position <= its_range.first_id else None
        return Section(min(its_range.until_id - 1, last_id), whole)
    following = MessageRange.objects.filter(first_id__gt=next_id).order_by("first_id").first()
    return Section(last_id if following is None else min(following.first_id - 1, last_id))


def remove(old: MessageRange, rules: RetentionRules, *, now: datetime) -> Removed | None:
    """Remove a range as a whole, or leave it for later; return None when it has to go row by row.

    Call it in a transaction, which is to end at once: from the drop to its end everybody else waits for the tables.
    """
    if kept := _kept(old, rules, now=now):
        log.debug("range kept", extra={"first": old.first_id, "by": kept})
        return None if _kept(old, rules, now=now, ahead=LEEWAY) else Removed()
    try:
        return _remove(old, rules, now=now)
    except _KeptError:
        return None
    except ranges.RangeBusyError:
        log.info("range in use", extra={"first": old.first_id})
        return Removed() if _kept(old, rules, now=now, ahead=-LEEWAY) else None


def _remove(old: MessageRange, rules: RetentionRules, *, now: datetime) -> Removed:
    with ranges.briefly():
        _refuse_snapshots()
        ranges.hold(old)
        if _kept(old, rules, now=now):
            raise _KeptError
        removed = Removed(*queries.row("clear_range", _bounds(old)))
        ranges.drop(old)
    return removed


def _refuse_snapshots() -> None:
    """Let nobody begin a snapshot of the history until the transaction ends. Raises RangeBusyError if there is one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SNAPSHOT_LOCK])
        if cursor.fetchone() != (True,):
            raise ranges.RangeBusyError


def _kept(
    old: MessageRange, rules: RetentionRules, *, now: datetime, ahead: timedelta = timedelta(0)
) -> str | None:
    """Return what keeps the range from being removed as a whole at a time so far ahead; None: nothing."""
    until = rules.until(now=now + ahead)
    if not until:
        return "rules"
    chosen = {
        "until": orjson.dumps(until).decode(),
        "newest_until": max(until.values()),
        "unmatched_until": until.get(UNMATCHED),
        "archived_until": rules.waits_until,
        "resubmittable": [status.value for status in RESUBMITTABLE],
        "ahead": ahead,
    }
    with queries.reading_many():
        (kept,) = queries.row("kept_in_range", {**chosen, **_bounds(old)})
    return None if kept is None else str(kept)


def _bounds(old: MessageRange) -> dict[str, int]:
    return {
        "first_id": old.first_id,
        "until_id": old.until_id,
        "first_delivery": delivery_id(old.first_id, 0),
        "until_delivery": delivery_id(old.until_id, 0),
    }
