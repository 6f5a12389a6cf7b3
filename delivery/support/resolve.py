"""Decisions by a person: marking a delivery in doubt as delivered, and cancelling a delivery."""

from django.db import transaction

from delivery.lifecycle import transitions
from delivery.models import Delivery, Status
from delivery.publishing import failures


class NotResolvedError(Exception):
    """Nothing was changed; the message says why."""


def mark_delivered(delivery_id: int, *, actor: str) -> None:
    """Settle an IN_DOUBT delivery as DELIVERED; raises NotResolvedError."""
    with transaction.atomic():
        failures.publish_notices_of([delivery_id])
        if transitions.mark_delivered(delivery_id, actor=actor):
            return
        if _status(delivery_id) == Status.IN_DOUBT:
            raise NotResolvedError(
                "Another endpoint of its group has taken the message; cancel this one."
            )
        raise NotResolvedError(
            f"It is {_status(delivery_id)}; only IN_DOUBT deliveries can be marked as delivered."
        )


def cancel_delivery(delivery_id: int, *, actor: str) -> None:
    """Settle an open or IN_DOUBT delivery as CANCELLED; raises NotResolvedError."""
    is_done = (
        transitions.cancel_deliveries([delivery_id], actor=actor)
        or _cancel_in_doubt(delivery_id, actor=actor)
        # Again, because somebody may have resubmitted it between the two.
        or transitions.cancel_deliveries([delivery_id], actor=actor)
    )
    if not is_done:
        raise NotResolvedError(
            f"It is {_status(delivery_id)}; "
            "only PENDING, IN_FLIGHT and IN_DOUBT deliveries can be cancelled."
        )


def _cancel_in_doubt(delivery_id: int, *, actor: str) -> bool:
    with transaction.atomic():
        failures.publish_notices_of([delivery_id])
        return transitions.cancel_in_doubt(delivery_id, actor=actor)


def _status(delivery_id: int) -> str:
    status = Delivery.objects.filter(pk=delivery_id).values_list("status", flat=True).first()
    return status or "it no longer exists: retention has just removed it"
