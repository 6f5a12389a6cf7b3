"""The backlog of a subscription, held while it was INACTIVE, and cancelled before sending resumes.

There may be a million deliveries, so a bulk job cancels them in many transactions. It begins with a
single value, the subscription's `cancellation_id`. From the commit that sets it

- the subscription is ACTIVE for publishing, so messages published from now on match it;
- it is INACTIVE for senders and mailboxes: the subscription's deliveries are not read
  (`delivery_sendable`, `fetch.sql`), and senders with deliveries already read are notified in the
  same transaction, as of any other change.

The job cancels the open deliveries with ids up to the last one existing then, and the transaction
of the last batch clears `cancellation_id`. Messages published meanwhile have later ids, and their
deliveries are sent from then on, in order. A subscription made INACTIVE and ACTIVE again meanwhile
still waits for the job; if a second cancellation was requested, it waits for the second.
"""

from django.db import connection, transaction

from delivery.database import queries
from delivery.lifecycle import notifier
from delivery.models import Lane
from delivery.models.delivery import ids_of_message
from delivery.models.moment import Clock
from subscriptions.models import Mode, Subscription


def count_backlog(subscription: Subscription, *, limit: int) -> int:
    """Return the number of the subscription's open deliveries, at most `limit` + 1."""
    wanted = {"things": [0], "subscriptions": [subscription.pk], "limit": limit}
    row = queries.named_row("waiting_of_subscriptions", wanted)
    waiting: int = row["waiting"]
    return waiting


def last_id() -> int:
    """Return the highest id of any delivery published until now, committed or not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM delivery_message_id_seq")
        (value,) = cursor.fetchone() or (0,)
    return ids_of_message(value)[1]


def next_of_backlog(subscription_id: int, *, after: int, until: int, limit: int) -> list[int]:
    """Return the subscription's open deliveries between these ids, oldest first.

    If there are none, those before `after` are searched once more, because a publisher may have
    committed late. Deliveries resubmitted by a person meanwhile are spared.
    """
    wanted = {"subscription": subscription_id, "until": until, "limit": limit}
    rows = queries.rows(
        "open_of_subscription", wanted | {"after": after, "spares_resubmitted": False}
    )
    if not rows:
        rows = queries.rows(
            "open_of_subscription", wanted | {"after": 0, "spares_resubmitted": True}
        )
    return [id for (id,) in rows]


def begin_cancellation(subscription: Subscription, *, cancellation_id: int) -> None:
    """Stop sending and handing out the deliveries until the job has ended."""
    _set(subscription.pk, cancellation_id)
    # Senders also drop the deliveries already read: see `delivery.lifecycle.notifier`.
    notifier.notify_of_change()
    notifier.nudge_lanes(*_lane_ids(subscription))


def end_cancellation(subscription_id: int, *, cancellation_id: int) -> None:
    """End this job's hold: newer deliveries are sent now, unless another job must end first."""
    subscription = Subscription.objects.filter(
        pk=subscription_id, cancellation_id=cancellation_id
    ).first()
    if subscription is not None:
        _set(subscription_id, None)
        notify_senders(subscription)


def notify_senders(subscription: Subscription) -> None:
    """Notify senders or mailboxes of deliveries of the subscription."""
    lane_ids = _lane_ids(subscription)
    notifier.notify_of_change()
    transaction.on_commit(lambda: notifier.notify_of_work(lane_ids))
    if subscription.mode == Mode.PULL:
        transaction.on_commit(lambda: notifier.notify_of_messages([subscription.subscriber_id]))


def _set(subscription_id: int, cancellation_id: int | None) -> None:
    Subscription.objects.filter(pk=subscription_id).update(
        cancellation_id=cancellation_id, updated_at=Clock()
    )
    notifier.notify_of_change()


def _lane_ids(subscription: Subscription) -> list[int]:
    return list(Lane.objects.of(subscription).values_list("pk", flat=True))
