"""The facts of an incident now: names, the head or last failure, the backlog, in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from delivery.database.queries import named_rows
from delivery.incidents.measures import measure_in_words
from delivery.models import Incident, IncidentKind, LaneState
from delivery.models.message import public_id
from subscriptions.values.counts import counted
from subscriptions.values.shown_addresses import masked_address

# The count of waiting deliveries stops here.
WAITING_LIMIT = 10_000
# Inturn publishes no message about the delivery of a message about an incident.
OWN_PREFIX = "Inturn.Incident."


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFacts:
    """The facts of an incident; those of rows that are gone are None.

    `event` is the event type of the head or last failure, `waiting` is at most WAITING_LIMIT + 1.
    """

    id: int
    lane: str | None
    lane_state: str | None
    subscriber_id: int | None
    subscriber: str | None
    subscription_id: int | None
    subscription: str | None
    endpoint: str | None
    event: str | None
    delivery_id: int | None
    message_id: int | None
    status: str | None
    attempts: int | None
    reason: str | None
    next_try_at: datetime | None
    url_state: str | None
    failures_in_row: int | None
    waiting: int | None

    @property
    def is_about_incidents(self) -> bool:
        return (self.event or "").startswith(OWN_PREFIX)

    @property
    def place(self) -> str:
        """The subscription as `subscriber/subscription`, or the lane."""
        if self.subscription is not None:
            return f"{self.subscriber}/{self.subscription}"
        return self.lane or "a subscription that was deleted"

    @property
    def message(self) -> str | None:
        return None if self.message_id is None else public_id(self.message_id)


def read_facts(incidents: Iterable[Incident]) -> dict[int, IncidentFacts]:
    """Return the facts of each incident by id, in one statement."""
    parameters = {"ids": [incident.pk for incident in incidents], "limit": WAITING_LIMIT}
    if not parameters["ids"]:
        return {}
    rows = named_rows("incident_facts", parameters)
    return {row["id"]: IncidentFacts(**row) for row in rows}


def subject_of(incident: Incident, facts: IncidentFacts) -> str:
    """Return the fault and the object, as a short sentence without a full stop."""
    place = facts.place
    match incident.kind:
        case IncidentKind.LANE:
            # The lane may be flowing at this moment: keep the earlier subject.
            is_stopped = facts.lane_state in (LaneState.BLOCKED, LaneState.SUSPENDED)
            called = f"{facts.lane} is {facts.lane_state if is_stopped else 'stopped'}"
            return called if is_stopped else incident.subject or called
        case IncidentKind.ENDPOINT:
            return f"{place} is DOWN"
        case IncidentKind.URL:
            return f"{masked_address(incident.url)} is {facts.url_state}"[:500]
        case IncidentKind.RETRYING:
            return f"Deliveries to {place} fail and are retried"
        case IncidentKind.FAILURES:
            return f"{place} fails: {incident.cause}"
        case IncidentKind.IN_DOUBT:
            return f"{counted(incident.count, 'delivery')} to {place} IN_DOUBT"
        case IncidentKind.OLDEST:
            return f"{facts.lane} is slow"
        case IncidentKind.PIPELINE:
            return f"{incident.key.rpartition(' ')[2]} of the history fails"
    return _OF_INSTALLATION[IncidentKind(incident.kind)]


def cause_of(incident: Incident, facts: IncidentFacts) -> str:
    """Return the cause in words: the answer of the endpoint, or the measure and the bound."""
    match incident.kind:
        case IncidentKind.FAILURES:
            # The key of the incident: the reasons of single failures differ.
            return incident.cause
        case IncidentKind.URL:
            return f"{facts.failures_in_row or 0:,} attempts in a row failed"
        case IncidentKind.IN_DOUBT:
            return "They may have been sent: a person must decide"
        case IncidentKind.OLDEST:
            return "Its oldest message has waited longer than the rule allows"
        case IncidentKind.BACKLOG:
            return "More deliveries wait than the rule allows"
        case IncidentKind.VERIFY:
            return "The last VERIFY found violations: see its findings"
        case IncidentKind.PIPELINE:
            return f"The last {counted(incident.count, 'run')} FAILED"
        case IncidentKind.DISK | IncidentKind.DATABASE:
            return measure_in_words(IncidentKind(incident.kind))
    return facts.reason or incident.cause


_OF_INSTALLATION = {
    IncidentKind.BACKLOG: "The backlog is large",
    IncidentKind.VERIFY: "The history is broken",
    IncidentKind.DISK: "The disk is nearly full",
    IncidentKind.DATABASE: "The database is large",
}
