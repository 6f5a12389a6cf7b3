"""Settles overdue deliveries: by time to live, mailbox days, receives, or restart (VOLATILE).

    PENDING ────────────────── past `expires_at`, or VOLATILE from an earlier server start ──▶ EXPIRED
    IN_FLIGHT, visibility over ── the same ──▶ EXPIRED
                               └─ fetched as often as `max_receives` allows, or VOLATILE ──▶ FAILED

Deliveries under way are never settled here, so a success counts however late it comes. A sender
sends a delivery only if it is not overdue once the run that names it is on disk
(`SenderContext.is_overdue`). So at any moment after `expires_at`, a delivery that may be at its
receiver is named by a recorded run, with its number of attempts at that time. A delivery not named
in this way will not be sent: a sender that reads it now finds it overdue, and one that read it
before drops it. A run stops naming its deliveries when its lane stops, is given back or is taken
over; an outcome increases the attempts; a sender that finds an overdue delivery clears its run. The
same holds for a lease: it exists until its visibility ends, and a fetch takes no overdue delivery.

Clocks. The database's clock decides whether a delivery is overdue, both here and when a sender
reads it; after reading, the sender counts seconds since its machine's boot. So this assumes that
the database's clock is not stepped forward in between: a delivery read before such a step and
recorded after it may become EXPIRED here first and still be sent, once, without its success being
recorded. Slewing, as time daemons do, has no noticeable effect.

Concurrency. Rows are locked first, rows locked by others are left for the next call, and the
decision uses the locked state. An acknowledgement, a person's action or a sender's commit happens
before or after, never in between, and there are no deadlocks. A QUEUE group is locked as a whole or
not at all, so deliveries that a sibling's success makes REDUNDANT do not become EXPIRED.

Crashes. A batch is one transaction with its notices and journal entries; the lanes that it unblocks
are woken after the commit. If that wake-up is lost, the pause of such a lane ends by itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

import orjson
from django.db import transaction

from delivery.database import queries
from delivery.lifecycle import journal, wake
from delivery.models import JournalKind, Status

_UNITS = (("day", 86_400), ("hour", 3_600))
_WORDS = {Status.EXPIRED: (JournalKind.EXPIRED, "expired"), Status.FAILED: (JournalKind.FAILED, "failed")}


def settle_overdue(*, limit: int) -> int:
    """Settle up to `limit` deliveries for each cause; return how many. Call it in a transaction."""
    found = queries.named_rows("lock_overdue", {"limit": limit})
    if len(found) < limit:
        # Otherwise the next call settles the groups.
        found += queries.named_rows("lock_overdue_groups", {"limit": limit})
    # A delivery may be overdue for several reasons: keep the first.
    overdue = list({row["id"]: row for row in reversed(found)}.values())
    if not overdue:
        return 0
    settled = _settle(overdue)
    _tell([row for row in overdue if row["id"] in settled])
    _let_flow({lane_id for lane_id in settled.values() if lane_id is not None})
    return len(settled)


def _settle(overdue: Iterable[Mapping[str, Any]]) -> dict[int, int | None]:
    """Settle the deliveries; return the settled ids, each with the lane that it stopped, if any."""
    rows = [{"id": row["id"], "status": _status(row).value, "reason": _reason(row)} for row in overdue]
    found = queries.named_rows("settle_overdue", {"rows": orjson.dumps(rows).decode()})
    return {row["id"]: row["stopped_lane"] for row in found}


def _status(row: Mapping[str, Any]) -> Status:
    return Status.FAILED if row["cause"] == "USED_UP" else Status.EXPIRED


def _reason(row: Mapping[str, Any]) -> str:
    """Return the reason as people read it next to the delivery."""
    return f"{_cause(row)} {lasting(row['seconds'])}" if row["cause"] == "EXPIRED" else _cause(row)


def _cause(row: Mapping[str, Any]) -> str:
    """Return the cause; for EXPIRED deliveries the duration is to follow."""
    match row["cause"]:
        case "USED_UP" if row["is_volatile"]:
            return "not acknowledged in time; a VOLATILE message is handed out once"
        case "USED_UP":
            return f"not acknowledged after {row['receives']} receives, as many as max_receives allows"
        case "DROPPED":
            moment = f"{row['started_at']:%Y-%m-%d %H:%M:%S} UTC"
            return f"dropped: it is VOLATILE, and the database server restarted at {moment}"
    if row["lane_id"] is not None:
        return "not delivered within its time to live of"
    return "not acknowledged within" if row["receives"] else "unread for"


def lasting(seconds: float) -> str:
    """Format a duration in the largest unit with a whole number; round a long one ("about …")."""
    whole = round(seconds)
    for unit, size in _UNITS:
        if whole >= size and whole % size == 0:
            return f"{whole // size} {unit}" if whole == size else f"{whole // size} {unit}s"
    for unit, size in _UNITS:
        if whole >= 2 * size:
            return f"about {round(whole / size)} {unit}s"
    return f"{whole} s"


def _tell(settled: Iterable[Mapping[str, Any]]) -> None:
    """Record one journal entry for each subscription and cause, whatever the single durations."""
    found: defaultdict[tuple[int, str, Status, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in settled:
        found[row["subscription_id"], row["subscription"], _status(row), _cause(row)].append(row)
    for (subscription_id, name, status, cause), rows in sorted(found.items(), key=itemgetter(0)):
        subject = "1 delivery" if len(rows) == 1 else f"{len(rows):,} deliveries"
        kind, verb = _WORDS[status]
        words = " ".join([cause, *_lasting_all(rows)])
        journal.record(kind, f"{subject} of {name} {verb}: {words}.", subscription_id=subscription_id)


def _lasting_all(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    seconds = [row["seconds"] for row in rows if row["cause"] == "EXPIRED"]
    if not seconds:
        return []
    shortest, longest = lasting(min(seconds)), lasting(max(seconds))
    return [shortest if shortest == longest else f"{shortest} to {longest}"]


def _let_flow(lane_ids: set[int]) -> None:
    """Wake the senders of lanes whose stopping delivery is settled, or others to take them."""
    wake.nudge(*lane_ids)
    transaction.on_commit(lambda: wake.lanes(lane_ids))
