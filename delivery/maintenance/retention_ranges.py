"""Removal of whole ranges: partitions are dropped, without looking up or deleting single rows.

A range is removed when retention permits the removal of each message (`kept_in_range.sql`). A range
soon free, within a day, is left alone until then; any other is removed row by row.
`maintenance/README.md` has the steps of the transaction and the races.
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
from delivery.maintenance.archived_files import require_files_of_messages
from delivery.maintenance.retention_rules import UNMATCHED, RetentionRules
from delivery.models import Message, MessageRange
from delivery.models.delivery import delivery_id

log = logging.getLogger(__name__)

# How much longer rows may be kept, for their range to be dropped.
LEEWAY = timedelta(days=1)


class _KeptError(Exception):
    """The range cannot be removed any more."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Removed rows of a range; all 0 if the range is left for later."""

    messages: int = 0
    deliveries: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class RangeSection:
    """The next messages of a pass, up to `last_id`.

    `whole` is the range of these messages, if the pass has removed none of it.
    """

    last_id: int
    whole: MessageRange | None = None


def section_after(position: int, *, last_id: int) -> RangeSection:
    """Return the section of the next message after a position: a range, its rest, or a gap."""
    next_id = Message.objects.filter(pk__gt=position, pk__lte=last_id).aggregate(Min("id"))[
        "id__min"
    ]
    if next_id is None:
        return RangeSection(last_id)
    its_range = MessageRange.objects.filter(first_id__lte=next_id, until_id__gt=next_id).first()
    if its_range is not None:
        # A pass begins with position 0, and so does the first range: no message has the id 0.
        whole = its_range if position <= its_range.first_id else None
        return RangeSection(min(its_range.until_id - 1, last_id), whole)
    following = MessageRange.objects.filter(first_id__gt=next_id).order_by("first_id").first()
    return RangeSection(last_id if following is None else min(following.first_id - 1, last_id))


def remove_range(old: MessageRange, rules: RetentionRules, *, now: datetime) -> Removed | None:
    """Remove a range as a whole, or leave it for later; None if it must be removed row by row.

    Raises ArchiveError if the archive does not have the files with the range's rows. Call it in a
    transaction which ends immediately afterwards: from the drop to the end all other transactions
    wait for the tables.
    """
    if kept := _kept(old, rules, now=now):
        log.debug("range kept", extra={"first": old.first_id, "by": kept})
        return None if _kept(old, rules, now=now, ahead=LEEWAY) else Removed()
    if rules.waits_for_archive:
        # Before anything is locked: a storage may take seconds.
        require_files_of_messages(old.first_id, old.until_id - 1)
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
        ranges.lock_range(old)
        if _kept(old, rules, now=now):
            raise _KeptError
        removed = Removed(*queries.row("clear_range", range_bounds(old)))
        ranges.drop_range(old)
    return removed


def _refuse_snapshots() -> None:
    """Prevent new history snapshots until the transaction ends; RangeBusyError if one exists."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SNAPSHOT_LOCK])
        if cursor.fetchone() != (True,):
            raise ranges.RangeBusyError


def _kept(
    old: MessageRange, rules: RetentionRules, *, now: datetime, ahead: timedelta = timedelta(0)
) -> str | None:
    """Return the reason to keep the whole range at `now + ahead`; None if there is none."""
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
    with queries.preferring_hash_joins():
        (kept,) = queries.row("kept_in_range", {**chosen, **range_bounds(old)})
    return None if kept is None else str(kept)


def range_bounds(old: MessageRange) -> dict[str, int]:
    """Return the parameters by which statements choose the range's messages and deliveries."""
    return {
        "first_id": old.first_id,
        "until_id": old.until_id,
        "first_delivery": delivery_id(old.first_id, 0),
        "until_delivery": delivery_id(old.until_id, 0),
    }
