"""What holding is about: a subscription, a subscriber or the installation; its lanes and mailboxes, and how it catches up.

A lane catches up while it has `catch_up_to`: deliveries up to that id may have been held, and the lane's sender begins
`catch_up_rate` a second, at most. When none of them waits any more a duty of chores ends that (`delivery.support.releases`). What a
mailbox's client fetches, and what is sent by queue senders, in the retry lane and in the callback lane, has no such rate.
"""

from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet

from delivery.lifecycle import wake
from delivery.models import Lane, LaneKind
from delivery.support import backlog
from subscriptions.models import Installation, Kind, Mode, Subscriber, Subscription

Held = Subscription | Subscriber | Installation


def installation() -> Installation:
    """Return the installation's row, which is made when it is first needed."""
    found, _ = Installation.objects.get_or_create(pk=1)
    return found


def subject(owner: Held) -> dict[str, int]:
    """Say in a journal entry what it is about, see `JournalEntry`."""
    match owner:
        case Subscription():
            return {"subscription_id": owner.pk}
        case Subscriber():
            return {"lane_id": Lane.objects.get(subscriber=owner).pk}
        case Installation():
            return {}


def catch_up(owner: Held, *, rate: float | None) -> None:
    """Have what waits sent at this rate, or as fast as it goes. Senders look every second."""
    lanes = Lane.objects.filter(kind=LaneKind.TOPIC)
    match owner:
        case Subscription():
            is_in_lane = owner.mode == Mode.PUSH and owner.event_type.kind == Kind.TOPIC
            lanes = lanes.filter(subscriber=owner.subscriber_id) if is_in_lane else lanes.none()
        case Subscriber():
            lanes = lanes.filter(subscriber=owner)
        case Installation():
            pass
    if rate is None:
        lanes.filter(catch_up_to__isnull=False).update(catch_up_rate=None, catch_up_to=None)
    else:
        lanes.update(catch_up_rate=rate, catch_up_to=backlog.last_id())


def wake_senders(owner: Held) -> None:
    """There is something to send of it, or to fetch."""
    match owner:
        case Subscription():
            backlog.wake_senders(owner)
        case Subscriber():
            wake.changed()
            lanes = Lane.objects.filter(subscriber=owner)
            lane_ids = list(lanes.values_list("pk", flat=True))
            transaction.on_commit(lambda: wake.lanes(lane_ids))
            _wake_mailboxes([owner.pk])
        case Installation():
            # Every sender wakes the lanes that it serves, and finds the others by its next poll.
            wake.changed()
            _wake_mailboxes(list(_fetching().values_list("subscriber", flat=True).distinct()))


def _fetching() -> QuerySet[Subscription]:
    return Subscription.objects.filter(mode=Mode.PULL)


def _wake_mailboxes(subscriber_ids: Collection[int]) -> None:
    transaction.on_commit(lambda: wake.mailboxes(subscriber_ids))
