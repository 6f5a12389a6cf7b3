"""People's actions on incidents: acknowledge, mute, assign, close, resubmit.

Each is one transaction, which locks the incident and announces the change. If two people act at
once, the second person sees the first change.
"""

from datetime import datetime
from typing import Any

from django.db import transaction

from delivery.incidents.announcements import CHANGED, CLOSED, IncidentChange, announce_changes
from delivery.incidents.facts import read_facts
from delivery.models import (
    BulkVerb,
    Incident,
    IncidentKind,
    IncidentState,
    Resubmission,
)
from delivery.support import bulk_jobs
from subscriptions import changes


class IncidentError(Exception):
    """Nothing was changed; the message says why."""


def acknowledge_incident(incident_id: int, *, actor: str, now: datetime) -> Incident:
    """Record that somebody works on it; raises IncidentError if it is closed, or somebody does."""
    with transaction.atomic():
        incident = _open(incident_id)
        if incident.acknowledged_by:
            raise IncidentError(f"{incident.acknowledged_by} has acknowledged it already.")
        incident.acknowledged_at, incident.acknowledged_by = now, actor
        return _saved(incident, "acknowledged", actor=actor, now=now)


def assign_incident(incident_id: int, *, assignee: str, actor: str, now: datetime) -> Incident:
    """Assign it to the user of the name, or to nobody; raises IncidentError if it is closed."""
    with transaction.atomic():
        incident = _open(incident_id)
        incident.assignee = assignee
        what = f"assigned to {assignee}" if assignee else "assigned to nobody"
        return _saved(incident, what, actor=actor, now=now)


def mute_incident(
    incident_id: int, *, until: datetime | None, actor: str, now: datetime
) -> Incident:
    """Send neither mail nor chat about the cause until then, or again; raises IncidentError.

    A later incident of the same cause is muted until then, too.
    """
    if until is not None and until <= now:
        raise IncidentError("The time until which it is muted has to be in the future.")
    with transaction.atomic():
        incident = _open(incident_id)
        incident.muted_until = until
        what = f"muted until {until:%Y-%m-%d %H:%M} UTC" if until else "unmuted"
        return _saved(incident, what, actor=actor, now=now)


def close_incident(incident_id: int, *, actor: str, now: datetime) -> Incident:
    """Close an incident of failures; raises IncidentError for others, whose causes are watched."""
    with transaction.atomic():
        incident = _open(incident_id)
        if incident.kind != IncidentKind.FAILURES:
            raise IncidentError("It closes by itself when its cause is gone.")
        incident.state, incident.closed_at = IncidentState.CLOSED, now
        incident.closed_by = actor
        return _saved(incident, "closed", actor=actor, now=now)


def resubmit_failures(incident_id: int, *, rate: float | None, actor: str) -> Resubmission:
    """Start a job to resubmit the incident's deliveries that are still failures.

    Raises IncidentError if there is none.
    """
    chosen = {"incident": incident_id}
    with transaction.atomic():
        incident = Incident.objects.select_for_update().get(pk=incident_id)
        job = bulk_jobs.start_job(chosen, rate=rate, actor=actor, verb=BulkVerb.RESUBMIT)
        if not job.count:
            transaction.set_rollback(True)
            raise IncidentError(f"No delivery of {incident} is a failure any more.")
        return job


def _open(incident_id: int) -> Incident:
    incident = Incident.objects.select_for_update().get(pk=incident_id)
    if incident.state != IncidentState.OPEN:
        raise IncidentError(f"It is {incident.state}.")
    return incident


def _saved(incident: Incident, what: str, *, actor: str, now: datetime) -> Incident:
    incident.announced_at, incident.is_changed = now, False
    before = Incident.objects.get(pk=incident.pk)
    incident.save()
    event = CLOSED if incident.state == IncidentState.CLOSED else CHANGED
    change = IncidentChange(
        incident=incident,
        facts=read_facts([incident])[incident.pk],
        event=event,
        what=what,
        actor=actor,
    )
    announce_changes([change], now=now)
    changes.record_change(
        actor=actor,
        action=what.split(maxsplit=1)[0],
        instance=incident,
        before=_acted(before),
        after=_acted(incident),
    )
    return incident


def _acted(incident: Incident) -> dict[str, Any]:
    return {
        "state": incident.state,
        "acknowledged_by": incident.acknowledged_by,
        "assignee": incident.assignee,
        "muted_until": None if incident.muted_until is None else incident.muted_until.isoformat(),
    }
