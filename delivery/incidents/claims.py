"""The claims of alerts: rows that one process may send, for a while.

    unsent ── claim_alerts: `next_at` moves ahead ──▶ claimed ── sent ──▶ `sent_at`
       ▲                                                 │  └─ the server fails ─▶ unsent, due later
       └────────────────── the sender died ──────────────┘

Claiming and noting are short transactions of their own; nothing is locked while a server is asked.
An alert in a pause after a failure has an `error`, and a claimed one has none: that tells the two
apart. A newer alert of the recipient ends the pause of older ones, so that they arrive in order.
A process that dies after the server took an alert, and before it notes that, lets another send it
again: a mail then has the same Message-ID.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from delivery.models import AlertChannel, IncidentAlert

# How long a sender may take for the alerts that it claims.
CLAIMED_FOR = timedelta(minutes=2)
# The alerts of one recipient that one call or connection sends.
MOST_AT_ONCE = 100
FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class ClaimedAlerts:
    """Alerts of one recipient, oldest first; never empty."""

    recipient: str
    alerts: Sequence[IncidentAlert]


def claim_alerts(channel: AlertChannel, *, now: datetime) -> ClaimedAlerts | None:
    """Claim alerts of the recipient that has waited longest, oldest first; None if none is due.

    Those that pause after a failure are among them: otherwise "over" would arrive before the alert
    that it ends.
    """
    unsent = IncidentAlert.objects.filter(channel=channel, sent_at=None, gives_up_at__gt=now)
    with transaction.atomic():
        first = (
            unsent.filter(next_at__lte=now)
            .order_by("next_at", "id")
            .select_for_update(skip_locked=True)
            .first()
        )
        if first is None:
            return None
        alerts = list(
            unsent.filter(~Q(error="") | Q(next_at__lte=now), recipient=first.recipient)
            .select_related("incident")
            .order_by("id")
            .select_for_update(skip_locked=True, of=("self",))[:MOST_AT_ONCE]
        )
        ids = [alert.pk for alert in alerts]
        IncidentAlert.objects.filter(pk__in=ids).update(next_at=now + CLAIMED_FOR, error="")
    return ClaimedAlerts(first.recipient, alerts)


def note_sent(ids: Collection[int], *, now: datetime) -> None:
    IncidentAlert.objects.filter(pk__in=ids).update(sent_at=now, error="")


def note_failed(claimed: ClaimedAlerts, *, error: str, now: datetime) -> None:
    """Note the error, and try the recipient's alerts again after a pause, longer each time."""
    for alert in claimed.alerts:
        pause = min(FIRST_PAUSE_SECONDS * 2.0**alert.tries, LONGEST_PAUSE_SECONDS)
        IncidentAlert.objects.filter(pk=alert.pk, sent_at=None).update(
            tries=alert.tries + 1, next_at=now + timedelta(seconds=pause), error=error[:500]
        )
