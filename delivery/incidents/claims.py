"""The claims of alerts: rows which a process may send, for a while.

    unsent ── claim_alerts: `next_at` moves ahead ──▶ claimed ── sent ──▶ `sent_at`
       ▲                                                 │  └─ the server fails ─▶ unsent, due later
       └────────────────── the sender died ──────────────┘

Claiming and noting are short transactions of their own; nothing is locked while a server answers.
The alerts of a recipient are sent in order: newer alerts wait while the oldest unsent alert is
claimed, or pauses after a failure. Otherwise "over" would arrive before the alert of the beginning.
If a process dies after the server took an alert, and before it records this, another process sends
it again: a mail then has the same Message-ID.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from django.db import transaction
from django.db.models import F, Min

from delivery.database import queries
from delivery.models import AlertChannel, IncidentAlert
from subscriptions.values.schedules import doubling_pause

# How long a sender may take for the claimed alerts.
CLAIMED_FOR = timedelta(minutes=2)
# The alerts of a recipient in one call or connection.
MOST_AT_ONCE = 100
FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class ClaimedAlerts:
    """Alerts of a recipient, oldest first; never empty."""

    recipient: str
    alerts: Sequence[IncidentAlert]


def due_channels(*, now: datetime) -> list[AlertChannel]:
    """Return the channels for which `claim_alerts` may find something."""
    found = queries.planned_rows("due_channels", {"now": now})
    return [AlertChannel(channel) for (channel,) in found]


def claim_alerts(channel: AlertChannel, *, now: datetime) -> ClaimedAlerts | None:
    """Claim due alerts of the recipient that has waited longest, oldest first; None without any.

    A recipient's alerts are due when the oldest unsent alert is.
    """
    unsent = IncidentAlert.objects.filter(channel=channel, sent_at=None, expires_at__gt=now)
    oldest = unsent.order_by().values("recipient").annotate(oldest=Min("id")).values("oldest")
    with transaction.atomic():
        first = (
            unsent.filter(pk__in=oldest, next_at__lte=now)
            .order_by("next_at", "id")
            .select_for_update(skip_locked=True)
            .first()
        )
        if first is None:
            return None
        following = (
            unsent.filter(recipient=first.recipient, pk__gte=first.pk)
            .select_related("incident")
            .order_by("id")
            .select_for_update(skip_locked=True, of=("self",))[:MOST_AT_ONCE]
        )
        alerts = list(takewhile(lambda alert: alert.next_at <= now, following))
        ids = [alert.pk for alert in alerts]
        IncidentAlert.objects.filter(pk__in=ids).update(next_at=now + CLAIMED_FOR)
    return ClaimedAlerts(first.recipient, alerts)


def note_sent(ids: Collection[int], *, now: datetime) -> None:
    IncidentAlert.objects.filter(pk__in=ids).update(sent_at=now, error="")


def note_failed(claimed: ClaimedAlerts, *, error: str, now: datetime) -> None:
    """Record the error, and try the unsent alerts again after a pause, longer each time."""
    failures = claimed.alerts[0].tries + 1
    pause = doubling_pause(FIRST_PAUSE_SECONDS, failures=failures, longest=LONGEST_PAUSE_SECONDS)
    ids = [alert.pk for alert in claimed.alerts]
    IncidentAlert.objects.filter(pk__in=ids, sent_at=None).update(
        tries=F("tries") + 1, next_at=now + timedelta(seconds=pause), error=error[:500]
    )
