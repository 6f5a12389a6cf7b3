"""Settling what is past its time: a time to live, a mailbox's days, its receives, a VOLATILE one's server.

    PENDING ────────────────── past `expires_at`, or VOLATILE and of an earlier server ──▶ EXPIRED
    IN_FLIGHT, visibility over ── the same ──▶ EXPIRED
                               └─ fetched as often as `max_receives` allows, or VOLATILE ──▶ FAILED

What is under way is never settled here, so a success counts however late it comes. A sender begins to send
only what is not past its time when the run that names it is on disk (`SenderContext.is_overdue`). So at any moment
after `expires_at`, what may be at its receiver is named by a recorded run with the attempts it had then, and
what no run names so will not be sent: whoever reads it finds it past its time, and what was read before is
dropped. A run names nothing any more when its lane stops, is given back or is taken over; an outcome raises
the attempts; a sender that meets what is past its time forgets its run. The same holds for a lease: it is
there until it is over, and a fetch takes nothing that is past its time.

Clocks. What is past its time is said by the database's clock, here and when a sender reads; from then on the
sender reckons with seconds since its machine's boot. So this assumes that the database's clock is not stepped
forward between the two: what was read before and is recorded after such a step may be EXPIRED here first and
be sent all the same, once, and its success is not recorded. Slewing, as time daemons do, changes nothing that
matters.

Two at once. Rows are locked first, those that anybody else has are left for the next time, and are judged as
they are then: an acknowledgement, a person, a sender's commit comes before or after, never in between, and
none waits for the other in a circle. Of a QUEUE group all or nothing is locked, so what a sibling's success
has made REDUNDANT is not EXPIRED.

Crashes. A batch is one transaction with its notices and its journal; the lanes that it stopped are nudged
after it. If that is lost, the pause of such a lane ends by itself.
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
    """Settle up to so many for each cause, and return how many; call it in a transaction."""
    found = queries.named_rows("lock_overdue", {"limit": limit})
    if len(found) < limit:
        # Else they have their turn at once after it.
        found += queries.named_rows("lock_overdue_groups", {"limit": limit})
    # Of several causes the first counts.
    overdue = list({row["id"]: row for row in reversed(found)}.values())
    if not overdue:
        return 0
    settled = _settle(overdue)
    _tell([row for row in overdue if row["id"] in settled])
    _let_flow({lane_id for lane_id in settled.values() if lane_id is not None})
    return len(settled)


def _settle(overdue: Iterable[Mapping[str, Any]]) -> dict[int, int | None]:
    """Return the settled ones, each with the lane that it stopped, if any."""
    rows = [{"id": row["id"], "status": _status(row).value, "reason": _reason(row)} for row in overdue]
    found = queries.named_rows("settle_overdue", {"rows": orjson.dumps(rows).decode()})
    return {row["id"]: row["stopped_lane"] for row in found}


def _status(row: Mapping[str, Any]) -> Status:
    return Status.FAILED if row["cause"] == "USED_UP" else Status.EXPIRED


def _reason(row: Mapping[str, Any]) -> str:
    """Say it as people read it beside the delivery."""
    return f"{_cause(row)} {lasting(row['seconds'])}" if row["cause"] == "EXPIRED" else _cause(row)


def _cause(row: Mapping[str, Any]) -> str:
    """Say why; of what EXPIRED how long it had is to follow."""
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
    """Say how long that is in the largest unit of which it is a whole number, or about how long if it is long."""
    whole = round(seconds)
    for unit, size in _UNITS:
        if whole >= size and whole % size == 0:
            return f"{whole // size} {unit}" if whole == size else f"{whole // size} {unit}s"
    for unit, size in _UNITS:
        if whole >= 2 * size:
            return f"about {round(whole / size)} {unit}s"
    return f"{whole} s"


def _tell(settled: Iterable[Mapping[str, Any]]) -> None:
    """Write one entry for each subscription and cause, however long each of the deliveries had."""
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
    """What stopped these lanes is settled: their senders are to look again, or somebody is to take them."""
    wake.nudge(*lane_ids)
    transaction.on_commit(lambda: wake.lanes(lane_ids))
