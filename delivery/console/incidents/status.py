"""The page of an incident: the cause, the outcomes of the deliveries, who was notified."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q

from delivery.console.lanes import stopped_lanes
from delivery.console.lanes.stopped_lanes import StoppedLane
from delivery.incidents.facts import WAITING_LIMIT, IncidentFacts, read_facts
from delivery.incidents.outcomes import FailureOutcomes, read_outcomes
from delivery.models import (
    Attempt,
    Incident,
    IncidentAlert,
    IncidentKind,
    IncidentRule,
    JournalEntry,
    JournalKind,
    Resubmission,
)
from delivery.standing.bounded_counts import Bounded
from delivery.support.payload import Payload, may_see_payload, payload_of

SHOWN_ALERTS = 20
SHOWN_JOBS = 5
SHOWN_ENTRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAnswer:
    """The last attempt of the head, or of the last failure; `answer` if the user may see it."""

    attempt: Attempt
    answer: Payload | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownIncident:
    """The values of the page; `waiting` is None for things behind which nothing waits."""

    facts: IncidentFacts
    rule: IncidentRule
    waiting: Bounded | None
    lane: StoppedLane | None
    outcomes: FailureOutcomes | None
    sample: SampleAnswer | None
    jobs: list[Resubmission]
    entries: list[JournalEntry]
    alerts: list[IncidentAlert]
    is_muted: bool


def read_incident(
    incident: Incident, *, user: User | AnonymousUser, now: datetime, with_sample: bool
) -> ShownIncident:
    """Load the page."""
    facts = read_facts([incident])[incident.pk]
    is_failures = incident.kind == IncidentKind.FAILURES
    return ShownIncident(
        facts=facts,
        rule=IncidentRule.objects.get(pk=incident.kind),
        waiting=None if facts.waiting is None else Bounded(facts.waiting, WAITING_LIMIT),
        lane=_stopped_lane(incident, facts),
        outcomes=read_outcomes(incident) if is_failures else None,
        sample=_sample(facts, user=user) if with_sample else None,
        jobs=list(Resubmission.objects.filter(filter__incident=incident.pk)[:SHOWN_JOBS])
        if is_failures
        else [],
        entries=_entries(incident),
        alerts=list(incident.alerts.order_by("-id")[:SHOWN_ALERTS]),
        is_muted=incident.muted_until is not None and incident.muted_until > now,
    )


def _stopped_lane(incident: Incident, facts: IncidentFacts) -> StoppedLane | None:
    if incident.kind != IncidentKind.LANE or incident.lane_id is None:
        return None
    if facts.subscriber_id is None:
        return None
    found = stopped_lanes.read_stopped_lanes(limit=1, subscriber_id=facts.subscriber_id)
    return found[0] if found and found[0].lane_id == incident.lane_id else None


def _sample(facts: IncidentFacts, *, user: User | AnonymousUser) -> SampleAnswer | None:
    if facts.delivery_id is None:
        return None
    attempt = Attempt.objects.filter(delivery=facts.delivery_id).order_by("-number").first()
    if attempt is None:
        return None
    excerpt = bytes(attempt.excerpt) if may_see_payload(user) else b""
    return SampleAnswer(attempt=attempt, answer=payload_of(excerpt) if excerpt else None)


def _entries(incident: Incident) -> list[JournalEntry]:
    named = Q(text__contains=f" {incident}:")
    since = incident.opened_at or incident.first_at
    rows = JournalEntry.objects.filter(named, kind=JournalKind.INCIDENT, at__gte=since)
    return list(rows.order_by("-id")[:SHOWN_ENTRIES])
