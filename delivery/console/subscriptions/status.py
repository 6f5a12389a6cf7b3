"""The status of a subscription: the lane, the last failures, and the latest events."""

from dataclasses import dataclass
from typing import Any

from delivery.console.lanes import stopped_lanes
from delivery.console.lanes.stopped_lanes import StoppedLane
from delivery.console.lanes.strips import Strip, read_strips
from delivery.console.subscribers.status import ENTRIES_SHOWN, latest_changes
from delivery.database.queries import named_rows
from delivery.models import JournalEntry, Lane
from subscriptions.models import ConfigurationChange, Kind, Mode, Subscription

FAILURES_SHOWN = 5
# Deliveries among which the failures are searched.
SEARCHED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSubscription:
    """The values of the page.

    `strip` is the lane of the subscriber, with the deliveries of all subscriptions; None for a
    mailbox and for an event type whose messages do not pass through it. `blocked` is set if this
    subscription stops the lane. A failure has `id`, `status`, `reason` and `settled_at`.
    """

    strip: Strip | None
    blocked: StoppedLane | None
    failures: list[dict[str, Any]]
    entries: list[JournalEntry]
    changes: list[ConfigurationChange]


def read_subscription(subscription: Subscription) -> ShownSubscription:
    is_in_order = subscription.mode == Mode.PUSH and subscription.event_type.kind == Kind.TOPIC
    lanes = Lane.objects.filter(subscriber=subscription.subscriber_id).values_list("pk", flat=True)
    strips = read_strips(list(lanes)) if is_in_order else []
    stopped = (
        stopped_lanes.read_stopped_lanes(limit=1, subscriber_id=subscription.subscriber_id)
        if is_in_order
        else []
    )
    sought = {"subscription": subscription.pk, "searched": SEARCHED, "rows": FAILURES_SHOWN}
    return ShownSubscription(
        strip=strips[0] if strips else None,
        blocked=stopped[0] if stopped and stopped[0].subscription_id == subscription.pk else None,
        failures=named_rows("last_failures", sought),
        entries=list(JournalEntry.objects.filter(subscription_id=subscription.pk)[:ENTRIES_SHOWN]),
        changes=latest_changes(subscription),
    )
