"""The duty that compares causes with incidents: it opens, changes and closes incidents.

See `README.md` for states, races and crash windows. A turn is one transaction.
"""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson

from delivery.database import queries
from delivery.incidents.announcements import CHANGED, IncidentChange, announce_changes
from delivery.incidents.facts import IncidentFacts, cause_of, read_facts, subject_of
from delivery.incidents.measures import measured_causes
from delivery.models import Incident, IncidentKind, IncidentSeverity, IncidentState

WATCH_SECONDS = 2.0
SEARCH_SECONDS = 15.0
# The watch's own changes of an incident are announced at most so often.
ANNOUNCED_AGAIN_AFTER = timedelta(minutes=5)
SIGNS_BATCH = 5_000
# Incidents of a turn, and causes of a kind: more follow in the next turn.
INCIDENTS_BATCH = 500
CAUSES_LIMIT = 10_000
# The newest deliveries of a subscription among which a success ends an incident of failures.
SEARCHED_FOR_SUCCESS = 100
KEPT_FOR = timedelta(days=90)
FORGOTTEN_BATCH = 100

_WATCHED = (IncidentKind.LANE, IncidentKind.ENDPOINT, IncidentKind.URL)
# These take longer to find.
_SEARCHED = (
    IncidentKind.RETRYING,
    IncidentKind.IN_DOUBT,
    IncidentKind.OLDEST,
    IncidentKind.BACKLOG,
    IncidentKind.VERIFY,
    IncidentKind.PIPELINE,
    IncidentKind.DISK,
    IncidentKind.DATABASE,
)


class _Pace:
    """The times of this process's next turns; the duty is called more often."""

    def __init__(self) -> None:
        self._watch_at = self._search_at = 0.0

    def is_due(self) -> bool:
        if time.monotonic() < self._watch_at:
            return False
        self._watch_at = time.monotonic() + WATCH_SECONDS
        return True

    def is_search_due(self) -> bool:
        if time.monotonic() < self._search_at:
            return False
        self._search_at = time.monotonic() + SEARCH_SECONDS
        return True


_pace = _Pace()


def advance_incidents(now: datetime) -> int:
    """Do a turn if it is due; return the number of failures and incidents it changed."""
    taken = add_failures()
    if not _pace.is_due():
        return taken
    return taken + watch_incidents(now, is_thorough=_pace.is_search_due())


def add_failures() -> int:
    """Add new failures to the incidents of their causes; return their number."""
    ((taken, incidents),) = queries.planned_rows("add_failures", {"limit": SIGNS_BATCH})
    for id, count in Counter(incidents).items():
        incident = Incident.objects.get(pk=id)
        incident.count += count
        incident.is_changed = incident.state == IncidentState.OPEN
        incident.save(update_fields=["count", "is_changed"])
    return int(taken)


def watch_incidents(now: datetime, *, is_thorough: bool) -> int:
    """Compare causes with incidents, and change the due incidents; return how many changed.

    Only a thorough turn looks for the causes found more slowly, and ends failures.
    """
    kinds = (*_WATCHED, *_SEARCHED) if is_thorough else _WATCHED
    found = _found_causes() if is_thorough else []
    causes = {"kinds": [*kinds], "found": orjson.dumps(found).decode()}
    queries.planned_rows("watch_causes", causes)
    ended = []
    if is_thorough:
        ended = queries.rows("ended_failures", {"searched": SEARCHED_FOR_SUCCESS})
        queries.execute_statement(
            "forget_incidents", {"before": now - KEPT_FOR, "limit": FORGOTTEN_BATCH}
        )
    due = queries.named_rows(
        "due_incidents",
        {
            "ended": [id for (id,) in ended],
            "announced_before": now - ANNOUNCED_AGAIN_AFTER,
            "limit": INCIDENTS_BATCH,
        },
    )
    if due:
        _change(due, now=now)
    return len(due)


def _found_causes() -> list[dict[str, Any]]:
    found = queries.named_rows("find_causes", {"kinds": [*_SEARCHED], "limit": CAUSES_LIMIT})
    return [*found, *(_measured(kind) for kind in measured_causes())]


def _measured(kind: str) -> dict[str, Any]:
    return {"key": kind, "kind": kind, "first_at": None, "count": 0}


def _change(due: Sequence[dict[str, Any]], *, now: datetime) -> None:
    incidents = Incident.objects.in_bulk([row["id"] for row in due])
    facts = read_facts(incidents.values())
    muted = _mutings(list(incidents.values()), now=now)
    changes = []
    for row in due:
        incident = incidents[row["id"]]
        _note(incident, facts[incident.pk], row["event"], muted, now=now)
        event, what = row["event"].capitalize(), row["event"].lower()
        if row["is_rising"] and event == CHANGED:
            incident.severity, what = IncidentSeverity.CRITICAL, "severity"
        changes.append(
            IncidentChange(incident=incident, facts=facts[incident.pk], event=event, what=what)
        )
    Incident.objects.bulk_update(incidents.values(), _CHANGED_COLUMNS)
    announce_changes(changes, now=now)


_CHANGED_COLUMNS = [
    "state",
    "severity",
    "subject",
    "cause",
    "waiting",
    "opened_at",
    "closed_at",
    "is_changed",
    "announced_at",
    "muted_until",
]


def _note(
    incident: Incident,
    facts: IncidentFacts,
    event: str,
    muted: dict[str, datetime],
    *,
    now: datetime,
) -> None:
    """Change the row: the due announcement, and the incident's state."""
    incident.announced_at, incident.is_changed = now, False
    if event == "CLOSED":
        # Subject and cause stay as they were announced: the cause is gone now.
        incident.state, incident.closed_at = IncidentState.CLOSED, now
        return
    incident.subject = subject_of(incident, facts)
    incident.cause = cause_of(incident, facts)[:2000]
    if facts.waiting is not None:
        incident.waiting = max(incident.waiting or 0, facts.waiting)
    if event == "OPENED":
        incident.state, incident.opened_at = IncidentState.OPEN, now
        incident.muted_until = muted.get(incident.key)


def _mutings(incidents: Sequence[Incident], *, now: datetime) -> dict[str, datetime]:
    """Return until when the earlier incidents of the same causes are muted."""
    keys = [incident.key for incident in incidents if incident.state == IncidentState.WATCHED]
    rows = Incident.objects.filter(
        key__in=keys, state=IncidentState.CLOSED, muted_until__gt=now
    ).order_by("muted_until")
    return {row.key: row.muted_until for row in rows if row.muted_until is not None}
