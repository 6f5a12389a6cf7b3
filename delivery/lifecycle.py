"""Every change of a delivery's status that a person makes.

Those that a sender makes are in `delivery/sql/settle.sql`. Each is a conditional
UPDATE, and only its row count tells whether it happened.
"""

from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from delivery import journal, wake
from delivery.models import Delivery, JournalKind, Status

# Deliveries settled by one statement: a long one would hold up the senders' commits.
BATCH = 5_000


def cancel(delivery_ids: Collection[int], *, actor: str, reason: str = "cancelled") -> int:
    """Settle PENDING deliveries as CANCELLED and return how many were.

    One that is being sent at this moment is cancelled too: its attempt is recorded, and it is not
    sent again. What a sender has read and not yet sent it drops as soon as it hears of it.
    """
    with transaction.atomic():
        cancelled = _cancel(Delivery.objects.filter(pk__in=delivery_ids), reason=f"{reason} by {actor}")
        if cancelled:
            _tell_senders(delivery_ids)
            text = f"{cancelled} deliveries were {reason}."
            only = next(iter(delivery_ids)) if len(delivery_ids) == 1 else None
            journal.record(JournalKind.CANCELLED, text, actor=actor, delivery_id=only)
    return cancelled


def cancel_backlog(subscription_id: int, *, actor: str) -> int:
    """Settle everything PENDING of a subscription as CANCELLED, in batches, and return how many."""
    total = 0
    while True:
        ids = list(
            Delivery.objects.pending()
            .filter(subscription_id=subscription_id)
            .order_by("id")
            .values_list("id", flat=True)[:BATCH]
        )
        if not ids:
            return total
        total += _cancel(Delivery.objects.filter(pk__in=ids), reason=f"backlog cancelled by {actor}")


def _tell_senders(delivery_ids: Collection[int]) -> None:
    """Let the lanes read again: what a sender has read already is still in its hands."""
    lanes = Delivery.objects.filter(pk__in=delivery_ids).exclude(lane=None).values_list("lane_id", flat=True)
    for lane_id in lanes.distinct().order_by():
        if lane_id is not None:
            wake.nudge(lane_id)


def _cancel(deliveries: "QuerySet[Delivery]", *, reason: str) -> int:
    return deliveries.filter(status=Status.PENDING).update(
        status=Status.CANCELLED, settled_at=timezone.now(), skipped=False, reason=reason
    )
