"""The status of a subscriber: the lane, the subscriptions, and the latest events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.console.health import recent as health
from delivery.console.health.recent import RecentHealth
from delivery.console.lanes import stopped_lanes
from delivery.console.lanes.stopped_lanes import StoppedLane
from delivery.console.lanes.strips import Strip, read_strips
from delivery.models import JournalEntry, Lane
from delivery.standing.reading import (
    last_delivered,
    standing_of_subscribers,
    standing_of_subscriptions,
)
from delivery.standing.vocabulary import Standing
from subscriptions.models import ConfigurationChange, Subscriber, Subscription

SUBSCRIPTIONS_SHOWN = 50
ENTRIES_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow:
    """A subscription: how it stands, and the last day."""

    subscription: Subscription
    standing: Standing
    health: RecentHealth


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSubscriber:
    """The values of the page; `blocked` is None unless the lane is stopped.

    `last_delivered_at` is that of the shown subscriptions, and None unless the subscriber is QUIET.
    """

    standing: Standing
    last_delivered_at: datetime | None
    strip: Strip | None
    blocked: StoppedLane | None
    subscriptions: list[SubscriptionRow]
    more_subscriptions: bool
    entries: list[JournalEntry]
    changes: list[ConfigurationChange]


def read_subscriber(subscriber: Subscriber, *, now: datetime) -> ShownSubscriber:
    """Load everything in a number of statements independent of the subscriber."""
    lane_ids = list(Lane.objects.filter(subscriber=subscriber).values_list("pk", flat=True))
    stopped = stopped_lanes.read_stopped_lanes(limit=1, subscriber_id=subscriber.pk)
    strips = [stopped[0].strip] if stopped else read_strips(lane_ids)
    found = list(
        subscriber.subscriptions.select_related("subscriber", "event_type")
        .defer("headers", "auth")
        .order_by("position", "pk")[: SUBSCRIPTIONS_SHOWN + 1]
    )
    standing = standing_of_subscribers([subscriber.pk])[subscriber.pk]
    shown = [subscription.pk for subscription in found[:SUBSCRIPTIONS_SHOWN]]
    return ShownSubscriber(
        standing=standing,
        last_delivered_at=last_delivered(standing, subscriptions=shown),
        strip=strips[0] if strips else None,
        blocked=stopped[0] if stopped else None,
        subscriptions=_rows(found[:SUBSCRIPTIONS_SHOWN], now=now),
        more_subscriptions=len(found) > SUBSCRIPTIONS_SHOWN,
        entries=list(JournalEntry.objects.filter(lane_id__in=lane_ids)[:ENTRIES_SHOWN]),
        changes=latest_changes(subscriber),
    )


def latest_changes(of: Subscriber | Subscription) -> list[ConfigurationChange]:
    """Return the latest configuration changes of a row, newest first."""
    kind = str(of._meta.verbose_name)
    return list(
        ConfigurationChange.objects.filter(object_type=kind, object_name=str(of))[:ENTRIES_SHOWN]
    )


def _rows(found: Sequence[Subscription], *, now: datetime) -> list[SubscriptionRow]:
    ids = [subscription.pk for subscription in found]
    healths = health.health_of_subscriptions(ids, now=now)
    standings = standing_of_subscriptions(ids)
    return [
        SubscriptionRow(
            subscription=subscription,
            standing=standings[subscription.pk],
            health=healths[subscription.pk],
        )
        for subscription in found
    ]
