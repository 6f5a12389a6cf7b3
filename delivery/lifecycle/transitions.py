"""Changes of a delivery's status requested by people, and those of `import delivered`.

`delivery/README.md` lists the statements of all others. Each change is a conditional statement, and
only the row count shows whether it happened.
"""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from delivery.database import queries
from delivery.lifecycle import journal, notifier
from delivery.models import Delivery, JournalKind, Status
from delivery.models.moment import ArchiveClock
from subscriptions.values.counts import counted

# The statuses a person may resubmit. A recorded success is not among them: neither the delivery's
# own, nor a sibling's (REDUNDANT), nor the success of the same fact in another message (DUPLICATE).
RESUBMITTABLE = (
    Status.REJECTED,
    Status.UNSUPPORTED,
    Status.FAILED,
    Status.IN_DOUBT,
    Status.EXPIRED,
    Status.CANCELLED,
)
CANCELLABLE = (Status.PENDING, Status.IN_FLIGHT, Status.IN_DOUBT)
# A person replaces a settlement by another: the archive has both.
_SETTLED_AGAIN: Mapping[str, Any] = {
    "settled_at": ArchiveClock(),
    "settled_before": F("settled_before") + 1,
}


def cancel_deliveries(
    delivery_ids: Collection[int], *, actor: str, reason: str = "cancelled"
) -> int:
    """Settle open deliveries as CANCELLED and return how many were.

    A delivery being sent at this moment is cancelled too: the attempt is recorded, and it is not
    sent again. A sender drops deliveries read and not sent as soon as it is notified. A client with
    a delivery fetched from a mailbox gets the error when acknowledging.
    """
    with transaction.atomic():
        cancelled = _cancel(delivery_ids, reason=f"{reason} by {actor}")
        if cancelled:
            _nudge_lanes_of(delivery_ids)
            text = (
                f"{counted(cancelled, 'delivery')} {'was' if cancelled == 1 else 'were'} {reason}."
            )
            only = next(iter(delivery_ids)) if len(delivery_ids) == 1 else None
            journal.record_entry(JournalKind.CANCELLED, text, actor=actor, delivery_id=only)
    return cancelled


def cancel_some(delivery_ids: Collection[int], *, reason: str, are_read: bool = True) -> int:
    """Settle the CANCELLABLE deliveries of a bulk job's batch as CANCELLED and return how many.

    The caller writes the journal. Call it after `failures.publish_notices_of`, which locks the
    deliveries in the same order and reports those in doubt. Senders are notified only if
    `are_read`, because otherwise they hold none of them.
    """
    with transaction.atomic():
        cancelled = _cancel(delivery_ids, reason=reason)
        in_doubt = Delivery.objects.filter(pk__in=delivery_ids, status=Status.IN_DOUBT)
        cancelled += in_doubt.update(
            status=Status.CANCELLED, **_SETTLED_AGAIN, reason=f"in doubt, {reason}"
        )
        if cancelled and are_read:
            _nudge_lanes_of(delivery_ids)
    return cancelled


def settle_as_duplicates(delivery_ids: Collection[int], *, reason: str) -> int:
    """Settle open deliveries, of messages delivered by the old broker, and return how many were.

    Like `cancel_deliveries`: a delivery being sent at this moment is settled too, with the attempt,
    and is not sent again.
    """
    if not delivery_ids:
        return 0
    with transaction.atomic():
        settled = _cancel(delivery_ids, reason=reason, status=Status.DUPLICATE)
        if settled:
            _nudge_lanes_of(delivery_ids)
            text = f"{counted(settled, 'delivery')} became DUPLICATE: {reason}."
            journal.record_entry(JournalKind.DUPLICATE, text, actor="manage.py import")
    return settled


def reopen_deliveries(delivery_ids: Collection[int], *, reason: str) -> list[int]:
    """Make settled deliveries PENDING again, each at the old place with a fresh budget.

    Return their ids. Only RESUBMITTABLE deliveries in a lane or a mailbox, without a DELIVERED in
    their QUEUE group, are reopened. The senders are notified of work, but no pause ends for it. A
    mailbox delivery has the whole time there again.
    """
    if not delivery_ids:
        return []
    ids = {"delivery": list(delivery_ids)}
    with transaction.atomic():
        queries.execute_statement("lock_groups", ids)
        chosen = {
            **ids,
            "from": [status.value for status in RESUBMITTABLE],
            "reason": reason,
            "mailbox_days": settings.ENVIRONMENT.mailbox_days,
        }
        rows = queries.rows("reopen", chosen)
        lane_ids = {lane_id for _, lane_id, _ in rows if lane_id is not None}
        mailboxes = {subscriber_id for _, lane_id, subscriber_id in rows if lane_id is None}
        transaction.on_commit(lambda: notifier.notify_of_work(lane_ids))
        transaction.on_commit(lambda: notifier.notify_of_messages(mailboxes))
    return sorted(id for id, *_ in rows)


def mark_delivered(delivery_id: int, *, actor: str) -> bool:
    """Settle an IN_DOUBT delivery as DELIVERED, and the PENDING siblings as REDUNDANT.

    Return False if it was not IN_DOUBT, or if another delivery of the group was delivered
    meanwhile.
    """
    try:
        with transaction.atomic():
            queries.execute_statement("lock_groups", {"delivery": [delivery_id]})
            if not _decide(delivery_id, Status.DELIVERED, actor=actor, words="marked as delivered"):
                return False
            _make_siblings_redundant(delivery_id)
    except IntegrityError:
        return False
    return True


def cancel_in_doubt(delivery_id: int, *, actor: str) -> bool:
    """Settle an IN_DOUBT delivery as CANCELLED; return False if it was not IN_DOUBT.

    The siblings of the QUEUE group go on.
    """
    with transaction.atomic():
        return _decide(delivery_id, Status.CANCELLED, actor=actor, words="cancelled")


def _decide(delivery_id: int, status: Status, *, actor: str, words: str) -> bool:
    decided = Delivery.objects.filter(pk=delivery_id, status=Status.IN_DOUBT).update(
        status=status, **_SETTLED_AGAIN, reason=f"in doubt, {words} by {actor}"
    )
    if decided:
        _nudge_lanes_of([delivery_id])
        text = f"The delivery in doubt was {words}."
        journal.record_entry(JournalKind.RESOLVED, text, actor=actor, delivery_id=delivery_id)
    return bool(decided)


def _make_siblings_redundant(delivery_id: int) -> None:
    row = Delivery.objects.values("message_id", "queue_group").get(pk=delivery_id)
    if row["queue_group"] is not None:
        rows = orjson.dumps([row | {"delivery_id": delivery_id}]).decode()
        queries.execute_statement("make_redundant", {"rows": rows})


def _nudge_lanes_of(delivery_ids: Collection[int]) -> None:
    """Make the lanes read again: a sender may still hold deliveries already read."""
    lanes = (
        Delivery.objects.filter(pk__in=delivery_ids)
        .exclude(lane=None)
        .values_list("lane_id", flat=True)
    )
    notifier.nudge_lanes(*lanes.distinct().order_by())


def _cancel(
    delivery_ids: Collection[int], *, reason: str, status: Status = Status.CANCELLED
) -> int:
    return len(
        queries.rows("cancel", {"delivery": list(delivery_ids), "status": status, "reason": reason})
    )
