"""The texts about an incident: of journal entries, and of mail and chat."""

from delivery.incidents.facts import WAITING_LIMIT, IncidentFacts
from delivery.models import Incident
from subscriptions.values.counts import counted
from subscriptions.values.times import duration, time_text


def journal_text(incident: Incident, event: str, what: str) -> str:
    """Return a sentence or two: the second has the cause, or the change if it has a name."""
    text = f"{event} {incident}: {incident.subject}."
    more = incident.cause
    if event == "Changed":
        more = "" if what == "changed" else f"{what[0].upper()}{what[1:]}"
    return f"{text} {more}." if more and more not in incident.subject else text


def alert_subject(incident: Incident, event: str) -> str:
    """Return the subject of a mail, in a line."""
    over = "over: " if event == "Closed" else ""
    return " ".join(f"[Inturn] {over}{incident.subject}".split())[:500]


def alert_text(incident: Incident, facts: IncidentFacts, event: str, *, link: str) -> str:
    """Return the plain text for a person who knows nothing of it yet."""
    return "\n".join([*_lines(incident, facts, event), "", link])


def _lines(incident: Incident, facts: IncidentFacts, event: str) -> list[str]:
    if event == "Closed":
        return _closing_lines(incident)
    lines = [f"{incident.subject}, since {time_text(incident.first_at)}.", ""]
    lines += [f"Cause: {incident.cause}"] if incident.cause else []
    if facts.message is not None:
        lines.append(f"Message: {facts.message} ({facts.event}) to {facts.place}")
    lines += [f"Failed: {counted(incident.count, 'delivery')}"] if incident.count else []
    lines += [f"Waiting: {waiting_text(facts.waiting)}"] if facts.waiting is not None else []
    lines += [f"Next try: {time_text(facts.next_try_at)}"] if facts.next_try_at else []
    return lines


def _closing_lines(incident: Incident) -> list[str]:
    assert incident.closed_at is not None
    lasted = duration(incident.closed_at - incident.first_at)
    first_at, closed_at = time_text(incident.first_at), time_text(incident.closed_at)
    lines = [
        f"{incident.subject}: this is over.",
        "",
        f"It lasted {lasted}, from {first_at} to {closed_at}.",
    ]
    lines += [f"Cause: {incident.cause}"] if incident.cause else []
    if incident.waiting is not None:
        lines.append(f"Waiting at most: {waiting_text(incident.waiting)}")
    lines += [f"Closed by {incident.closed_by}."] if incident.closed_by else []
    return lines


def waiting_text(waiting: int) -> str:
    if waiting > WAITING_LIMIT:
        return f"more than {WAITING_LIMIT:,} deliveries"
    return counted(waiting, "delivery")
