"""Settles overdue deliveries: by time to live, mailbox days, receives, or restart (VOLATILE).

Deliveries under way are never settled here, so a success counts however late it comes. Rows are
locked first, and the decision uses their locked state. `maintenance/README.md` has the states, the
assumptions about clocks, and the races.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

import orjson
from django.db import transaction

from delivery.database import queries
from delivery.lifecycle import journal, notifier
from delivery.models import JournalKind, Status
from subscriptions.values.counts import counted
from subscriptions.values.times import time_text

_UNITS = (("day", 86_400), ("hour", 3_600))
_WORDS = {
    Status.EXPIRED: (JournalKind.EXPIRED, "expired"),
    Status.FAILED: (JournalKind.FAILED, "failed"),
}


def is_due(_: datetime) -> bool:
    """Return whether `settle_overdue` may find something."""
    return queries.is_true("is_overdue")


def settle_overdue(*, limit: int) -> int:
    """Settle up to `limit` deliveries for each cause; return how many. Call it in a transaction."""
    rows = queries.named_rows("lock_overdue", {"limit": limit})
    if len(rows) < limit:
        # Otherwise the next call settles the groups.
        rows += queries.named_rows("lock_overdue_groups", {"limit": limit})
    # A delivery may be overdue for several reasons: keep the first.
    overdue = list({row["id"]: row for row in reversed(rows)}.values())
    if not overdue:
        return 0
    settled = _settle(overdue)
    _record([row for row in overdue if row["id"] in settled])
    _notify({lane_id for lane_id in settled.values() if lane_id is not None})
    return len(settled)


def _settle(overdue: Iterable[Mapping[str, Any]]) -> dict[int, int | None]:
    """Settle the deliveries; return the settled ids, each with the stopped lane, if any."""
    rows = [
        {"id": row["id"], "status": _status(row).value, "reason": _reason(row)} for row in overdue
    ]
    settled = queries.named_rows("settle_overdue", {"rows": orjson.dumps(rows).decode()})
    return {row["id"]: row["stopped_lane"] for row in settled}


def _status(row: Mapping[str, Any]) -> Status:
    return Status.FAILED if row["cause"] == "USED_UP" else Status.EXPIRED


def _reason(row: Mapping[str, Any]) -> str:
    """Return the reason as people read it next to the delivery."""
    return (
        f"{_cause(row)} {duration_text(row['seconds'])}"
        if row["cause"] == "EXPIRED"
        else _cause(row)
    )


def _cause(row: Mapping[str, Any]) -> str:
    """Return the cause; for EXPIRED deliveries the caller appends the duration."""
    match row["cause"]:
        case "USED_UP" if row["is_volatile"]:
            return "not acknowledged in time; a VOLATILE message is handed out once"
        case "USED_UP":
            return (
                f"not acknowledged after {row['receives']} receives, as many as max_receives allows"
            )
        case "DROPPED":
            moment = time_text(row["started_at"])
            return f"dropped: it is VOLATILE, and the database server restarted at {moment}"
    if row["lane_id"] is None and row["is_joined"]:
        return "the other messages of its join did not come within"
    if row["lane_id"] is not None:
        return "not delivered within its time to live of"
    return "not acknowledged within" if row["receives"] else "unread for"


def duration_text(seconds: float) -> str:
    """Format a duration in the largest unit with a whole number; round a long list ("about …")."""
    whole = round(seconds)
    for unit, size in _UNITS:
        if whole >= size and whole % size == 0:
            return f"{whole // size} {unit}" if whole == size else f"{whole // size} {unit}s"
    for unit, size in _UNITS:
        if whole >= 2 * size:
            return f"about {round(whole / size)} {unit}s"
    return f"{whole} s"


def _record(settled: Iterable[Mapping[str, Any]]) -> None:
    """Record a journal entry for each subscription and cause, whatever the single durations."""
    groups: defaultdict[tuple[int, str, Status, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in settled:
        groups[row["subscription_id"], row["subscription"], _status(row), _cause(row)].append(row)
    for (subscription_id, name, status, cause), rows in sorted(groups.items(), key=itemgetter(0)):
        subject = counted(len(rows), "delivery")
        kind, verb = _WORDS[status]
        words = " ".join([cause, *_range_of_durations(rows)])
        journal.record_entry(
            kind, f"{subject} of {name} {verb}: {words}.", subscription_id=subscription_id
        )


def _range_of_durations(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    seconds = [row["seconds"] for row in rows if row["cause"] == "EXPIRED"]
    if not seconds:
        return []
    shortest, longest = duration_text(min(seconds)), duration_text(max(seconds))
    return [shortest if shortest == longest else f"{shortest} to {longest}"]


def _notify(lane_ids: set[int]) -> None:
    """Nudge the lanes whose stopping delivery is settled, and notify of their work.

    Their senders read again, or a process takes a lane without a sender.
    """
    notifier.nudge_lanes(*lane_ids)
    transaction.on_commit(lambda: notifier.notify_of_work(lane_ids))
