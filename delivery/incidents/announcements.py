"""Changes of incidents are announced: journal, messages `Inturn.Incident.*`, mail and chat.

Everything is written in the caller's transaction, which also changes the incidents: after a crash a
change and all announcements of it are there, or none of them. Mail and chat are rows, sent later by
`delivery.incidents.alerts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.conf import settings

from delivery.incidents import words
from delivery.incidents.facts import IncidentFacts
from delivery.models import (
    AlertChannel,
    Incident,
    IncidentAlert,
    IncidentRule,
    JournalEntry,
    JournalKind,
)
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish_own
from subscriptions.matching.lookups import event_type_by_name
from subscriptions.models import EventType
from subscriptions.values.media_types import JSON
from subscriptions.values.shown_addresses import masked_address, secret_address_key

OPENED, CHANGED, CLOSED = "Opened", "Changed", "Closed"
# A mail or chat server down for longer does not get old announcements.
EXPIRES_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentChange:
    """A change of an incident: `event` is OPENED, CHANGED or CLOSED, `what` says more.

    `what` is like `severity` or `acknowledged`; `actor` is the person who did it, if any.
    """

    incident: Incident
    facts: IncidentFacts
    event: str
    what: str
    actor: str = ""


def announce_changes(changes: Sequence[IncidentChange], *, now: datetime) -> None:
    """Write the journal, publish the messages and store mail and chat; needs a transaction."""
    _write_journal(changes)
    drafts = [_draft(change) for change in changes if not change.facts.is_about_incidents]
    if drafts:
        publish_own(drafts)
    rules = IncidentRule.objects.in_bulk({change.incident.kind for change in changes})
    IncidentAlert.objects.bulk_create(
        alert
        for change in changes
        if change.event != CHANGED and not _is_muted(change.incident, now=now)
        for alert in _alerts(change, rules[change.incident.kind], now=now)
    )


def incident_url(incident: Incident) -> str:
    """Return the address of the incident's page, with which mail links to it."""
    # Without `reverse`: it would load all pages of the console into the chores.
    return f"{settings.ENVIRONMENT.base_url}/admin/delivery/incident/{incident.pk}/"


def incident_body(change: IncidentChange) -> dict[str, Any]:
    """Return the body of the message, as in the event types' sample."""
    incident, facts = change.incident, change.facts
    lasted = None
    if incident.closed_at is not None:
        lasted = round((incident.closed_at - incident.first_at).total_seconds(), 3)
    return {
        "incident": incident.pk,
        "change": change.what,
        "by": change.actor or None,
        **{name: getattr(incident, name) for name in ("kind", "state", "severity", "subject")},
        "cause": incident.cause,
        "lane": facts.lane,
        "subscriber": facts.subscriber,
        "subscription": facts.subscription,
        "url": masked_address(incident.url) or None,
        "url_key": secret_address_key(incident.url) if incident.url else None,
        "message": facts.message,
        "delivery": facts.delivery_id,
        "count": incident.count,
        "waiting": facts.waiting,
        "since": incident.first_at,
        "opened_at": incident.opened_at,
        "closed_at": incident.closed_at,
        "lasted_seconds": lasted,
        "next_try_at": facts.next_try_at,
        "acknowledged_by": incident.acknowledged_by or None,
        "assignee": incident.assignee or None,
        "link": incident_url(incident),
    }


def _write_journal(changes: Sequence[IncidentChange]) -> None:
    JournalEntry.objects.bulk_create(
        JournalEntry(
            kind=JournalKind.INCIDENT,
            text=words.journal_text(change.incident, change.event, change.what),
            actor=change.actor,
            delivery_id=change.facts.delivery_id,
            subscription_id=change.facts.subscription_id,
            lane_id=change.incident.lane_id,
        )
        for change in changes
    )


def _draft(change: IncidentChange) -> Draft:
    headers = {"content-type": JSON}
    if change.facts.subscriber:
        headers["filter-string"] = change.facts.subscriber
    return Draft(
        event_type=_event_type(change.event),
        headers=headers,
        body=orjson.dumps(incident_body(change), option=orjson.OPT_UTC_Z),
        content_type=JSON,
    )


def _event_type(event: str) -> EventType:
    event_type = event_type_by_name(f"Inturn.Incident.{event}")
    assert event_type is not None, "it is part of the installation and cannot be deleted"
    return event_type


def _is_muted(incident: Incident, *, now: datetime) -> bool:
    return incident.muted_until is not None and incident.muted_until > now


def _alerts(change: IncidentChange, rule: IncidentRule, *, now: datetime) -> list[IncidentAlert]:
    mail_to = (rule.mail_to or settings.ENVIRONMENT.mail.to) if settings.EMAIL_HOST else []
    recipients = [
        *((AlertChannel.MAIL, address, None) for address in dict.fromkeys(mail_to)),
        *(
            (AlertChannel.CHAT, secret_address_key(url), url)
            for url in dict.fromkeys(rule.chat_urls)
        ),
    ]
    if not recipients:
        return []
    texts: Mapping[str, str] = {
        "subject": words.alert_subject(change.incident, change.event),
        "text": words.alert_text(
            change.incident, change.facts, change.event, link=incident_url(change.incident)
        ),
    }
    return [
        IncidentAlert(
            incident=change.incident,
            channel=channel,
            recipient=recipient,
            url=url,
            expires_at=now + EXPIRES_AFTER,
            **texts,
        )
        for channel, recipient, url in recipients
    ]
