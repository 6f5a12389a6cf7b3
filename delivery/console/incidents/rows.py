"""The list of incidents: facts, failed deliveries and buttons of the rows of a page."""

from django.db.models import Case, Value, When
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.shared.labels import label
from delivery.incidents.facts import WAITING_LIMIT, IncidentFacts
from delivery.models import Incident, IncidentKind, IncidentSeverity, IncidentState

TONES = {IncidentSeverity.CRITICAL: "bad", IncidentSeverity.WARNING: "warning"}


def open_first() -> Case:
    states = [IncidentState.OPEN, IncidentState.CLOSED]
    return Case(*(When(state=state, then=Value(place)) for place, state in enumerate(states)))


def state_label(incident: Incident) -> SafeString:
    """Return the severity of an open incident, or closed, acknowledged or muted."""
    if incident.state == IncidentState.CLOSED:
        return label("CLOSED", tone="good")
    return label(incident.severity, tone=TONES[IncidentSeverity(incident.severity)])


def notes_of(incident: Incident) -> str:
    """Return who works on it, in the words of a second line."""
    notes = [f"acknowledged by {incident.acknowledged_by}"] if incident.acknowledged_by else []
    notes += [f"assigned to {incident.assignee}"] if incident.assignee else []
    if incident.muted_until is not None and incident.muted_until > timezone.now():
        notes.append("muted")
    return ", ".join(notes)


def waiting_of(facts: IncidentFacts) -> str:
    if facts.waiting is None:
        return "–"
    return f"{WAITING_LIMIT:,}+" if facts.waiting > WAITING_LIMIT else f"{facts.waiting:,}"


def head_of(facts: IncidentFacts) -> SafeString | str:
    if facts.message_id is None:
        return "–"
    url = reverse("admin:delivery_message_change", args=[facts.message_id])
    return format_html('<a class="inturn-link" href="{}">{}</a>', url, facts.message)


def buttons_of(incident: Incident) -> SafeString | str:
    if incident.state != IncidentState.OPEN or incident.acknowledged_by:
        return ""
    return _button("acknowledge", "Acknowledge", incident)


def _button(name: str, text: str, incident: Incident) -> SafeString:
    url = reverse(f"admin:delivery_incident_{name}", args=[incident.pk])
    return format_html(
        '<button type="submit" class="inturn-button" form="console-post" '
        'formaction="{}">{}</button>',
        url,
        text,
    )


def is_of_failures(incident: Incident) -> bool:
    return incident.kind == IncidentKind.FAILURES
