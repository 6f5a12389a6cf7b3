"""Objects with holds, a subscription, a subscriber or the installation, and catching up.

A lane catches up while it has `catch_up_to`: deliveries up to this id may have been held, and the
lane's sender starts at most `catch_up_rate` of them a second. When none of them waits any more, a
duty of chores ends the catching up (`delivery.support.releases`). Fetches from mailboxes have no
such rate, nor have queue lanes, the retry lane and the callback lane.
"""

from collections.abc import Collection

from django.db import connection, transaction
from django.db.models import QuerySet

from delivery.lifecycle import notifier
from delivery.models import Lane, LaneKind
from delivery.support import backlog
from subscriptions.models import Installation, Kind, Mode, Subscriber, Subscription

Held = Subscription | Subscriber | Installation

# The limit of waiting for a lane's row locked by another session. Meanwhile the rows of the lanes
# before it are locked for their senders.
LOCK_MILLISECONDS = 500


def installation() -> Installation:
    """Return the installation's row, created on first use."""
    row, _ = Installation.objects.get_or_create(pk=1)
    return row


def journal_subject(owner: Held) -> dict[str, int]:
    """Return the columns by which a journal entry refers to the object, see `JournalEntry`."""
    match owner:
        case Subscription():
            return {"subscription_id": owner.pk}
        case Subscriber():
            return {"lane_id": Lane.objects.get(subscriber=owner).pk}
        case Installation():
            return {}


def set_catch_up_rate(owner: Held, *, rate: float | None) -> None:
    """Set the rate for waiting deliveries, None for no limit. Senders read it every second.

    Fails with a lock time-out while another session has locked any of the lanes' rows for long.
    """
    lanes = Lane.objects.filter(kind=LaneKind.TOPIC)
    match owner:
        case Subscription():
            is_in_lane = owner.mode == Mode.PUSH and owner.event_type.kind == Kind.TOPIC
            lanes = lanes.filter(subscriber=owner.subscriber_id) if is_in_lane else lanes.none()
        case Subscriber():
            lanes = lanes.filter(subscriber=owner)
        case Installation():
            pass
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_MILLISECONDS}ms"])
        if rate is None:
            lanes.filter(catch_up_to__isnull=False).update(catch_up_rate=None, catch_up_to=None)
        else:
            lanes.update(catch_up_rate=rate, catch_up_to=backlog.last_id())
        cursor.execute("SET LOCAL lock_timeout = 0")


def notify_senders(owner: Held) -> None:
    """Notify senders and mailboxes of deliveries of the object."""
    match owner:
        case Subscription():
            backlog.notify_senders(owner)
        case Subscriber():
            notifier.notify_of_change()
            lanes = Lane.objects.filter(subscriber=owner)
            lane_ids = list(lanes.values_list("pk", flat=True))
            transaction.on_commit(lambda: notifier.notify_of_work(lane_ids))
            _notify_mailboxes([owner.pk])
        case Installation():
            # Each sender nudges the served lanes, and finds others at the next poll.
            notifier.notify_of_change()
            _notify_mailboxes(list(_fetching().values_list("subscriber", flat=True).distinct()))


def _fetching() -> QuerySet[Subscription]:
    return Subscription.objects.filter(mode=Mode.PULL)


def _notify_mailboxes(subscriber_ids: Collection[int]) -> None:
    transaction.on_commit(lambda: notifier.notify_of_messages(subscriber_ids))
