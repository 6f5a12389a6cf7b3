"""What support does about a blocked lane: try again now, or skip the message that blocks it."""

from django.db import transaction
from django.utils import timezone

from delivery import journal, lifecycle, wake
from delivery.models import JournalKind, Lane, LaneState


class NotBlockedError(Exception):
    """The lane is not blocked (any more): there is nothing to retry or skip."""


def retry(lane: Lane, *, actor: str) -> None:
    """End the lane's pause: its head is sent at once. Raises NotBlockedError."""
    with transaction.atomic():
        delivery_id = _head(lane)
        _end_pause(lane)
        journal.record(
            JournalKind.RETRIED,
            f"Retry now of {lane}.",
            actor=actor,
            delivery_id=delivery_id,
            lane_id=lane.pk,
        )


def skip(lane: Lane, *, actor: str, expected: int | None = None) -> int:
    """Cancel the delivery that blocks the lane and go on with the next; return its id.

    Give the delivery that the person saw as `expected`, and none that came to the head since is skipped. Raises NotBlockedError also when that delivery was settled meanwhile. The delivery
    comes before the lane, as in a sender's commits: the other way round the two could wait for each other.
    """
    with transaction.atomic():
        delivery_id = _head(lane)
        is_another = expected not in (None, delivery_id)
        if is_another or not lifecycle.cancel([delivery_id], actor=actor, reason="skipped"):
            raise NotBlockedError
        _end_pause(lane)
        journal.record(
            JournalKind.SKIPPED,
            f"The message that blocked {lane} was skipped.",
            actor=actor,
            delivery_id=delivery_id,
            lane_id=lane.pk,
        )
    return delivery_id


def _head(lane: Lane) -> int:
    blocked = Lane.objects.filter(pk=lane.pk, state=LaneState.BLOCKED).first()
    if blocked is None or blocked.delivery_id is None:
        raise NotBlockedError
    return blocked.delivery_id


def _end_pause(lane: Lane) -> None:
    if not Lane.objects.filter(pk=lane.pk, state=LaneState.BLOCKED).update(next_try_at=timezone.now()):
        raise NotBlockedError
    wake.nudge(lane.pk)
