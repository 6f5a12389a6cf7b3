"""The backlog of a subscription: what it held while it was INACTIVE, cancelled before it is sent to again.

That may be a million deliveries, so a bulk job does it, in many transactions, and begins with one row: the subscription's
`cancellation_id`. From the commit that sets it on

- the subscription is ACTIVE for those who publish, so that what is published matches it;
- it is INACTIVE for those who send and hand out: nothing of it is read (`delivery_sendable`, `fetch.sql`), and senders
  that have read something of it hear of the change in that very transaction, as of any other.

The job cancels what is open with ids up to the last one that was given out then, and the transaction of its last batch clears
`cancellation_id`: what was published meanwhile has later ids, and flows from then on, in order. A subscription that is made
INACTIVE and ACTIVE again meanwhile waits for the job all the same; with another cancellation it waits for that one.
"""

from django.db import connection, transaction

from delivery.database import queries
from delivery.lifecycle import wake
from delivery.models import Lane
from delivery.models.delivery import ids_of_message
from delivery.models.moment import Clock
from subscriptions.models import Mode, Subscription


def count(subscription: Subscription, *, limit: int) -> int:
    """Return how many deliveries of it are open, at most `limit` and one."""
    row = queries.named_row("waiting_of_subscriptions", {"ids": [subscription.pk], "limit": limit})
    found: int = row["waiting"]
    return found


def last_id() -> int:
    """Return the last id that a delivery of a message published until now may have, committed or not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM delivery_message_id_seq")
        (value,) = cursor.fetchone() or (0,)
    return ids_of_message(value)[1]


def left(subscription_id: int, *, after: int, until: int, limit: int) -> list[int]:
    """Return what is open of it between these ids, the oldest first.

    When nothing is, those before `after` are looked for once more: a publisher may have committed late. What a person
    has sent again behind a cancellation stays.
    """
    wanted = {"subscription": subscription_id, "until": until, "limit": limit}
    found = queries.rows("open_of_subscription", wanted | {"after": after, "spares_resubmitted": False})
    if not found:
        found = queries.rows("open_of_subscription", wanted | {"after": 0, "spares_resubmitted": True})
    return [id for (id,) in found]


def hold(subscription: Subscription, *, cancellation_id: int) -> None:
    """Let nothing of it be sent or handed out until that job has ended."""
    _set(subscription.pk, cancellation_id)
    # What a sender has read of it is dropped, too: see `delivery.lifecycle.wake`.
    wake.changed()
    wake.nudge(*_lane_ids(subscription))


def let_flow(subscription_id: int, *, cancellation_id: int) -> None:
    """The job has ended: what has come meanwhile is sent, unless another job is to end first."""
    subscription = Subscription.objects.filter(pk=subscription_id, cancellation_id=cancellation_id).first()
    if subscription is not None:
        _set(subscription_id, None)
        wake_senders(subscription)


def wake_senders(subscription: Subscription) -> None:
    """There is something to send of it, or to fetch."""
    lane_ids = _lane_ids(subscription)
    wake.changed()
    transaction.on_commit(lambda: wake.lanes(lane_ids))
    if subscription.mode == Mode.PULL:
        transaction.on_commit(lambda: wake.mailboxes([subscription.subscriber_id]))


def _set(subscription_id: int, cancellation_id: int | None) -> None:
    Subscription.objects.filter(pk=subscription_id).update(
        cancellation_id=cancellation_id, updated_at=Clock()
    )
    wake.changed()


def _lane_ids(subscription: Subscription) -> list[int]:
    return list(Lane.objects.of(subscription).values_list("pk", flat=True))
