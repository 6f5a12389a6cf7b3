"""Support for a stopped lane: try again now, skip the stopping message, or resume it.

The lane of a CONCURRENT subscriber is BLOCKED while an endpoint is down. The stopping delivery was
the last to fail there and has another due time, so trying now makes it due as well. If it was
VOLATILE, it is settled.

A BLOCKED lane tries by itself; `retry_head` only ends the pause. A SUSPENDED lane sends nothing
until it is resumed: the row becomes BLOCKED and due, which the sender treats as an ended pause. The
delivery on top, if it is still PENDING, gets the attempts of the policy again. After a rejection
this delivery is settled, and the lane continues with the next.

Each is a conditional UPDATE of the lane's row, so it does not overrule a sender which resumed the
lane meanwhile, because a probe was answered. The delivery is changed before the lane, as in a
sender's commits: in the opposite order the two could deadlock.
"""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from delivery.lifecycle import journal, notifier, transitions
from delivery.models import Delivery, EndpointHealth, JournalKind, Lane, LaneState


class NotBlockedError(Exception):
    """The lane is not blocked; there is nothing to retry or skip."""


class SuspendedError(NotBlockedError):
    """The lane is suspended: it does not try by itself, so there is no pause to end."""


class NotSuspendedError(Exception):
    """The lane is not suspended; there is nothing to resume."""


def retry_head(lane: Lane, *, actor: str) -> None:
    """End the lane's pause: the head is sent at once. Raises NotBlockedError."""
    with transaction.atomic():
        stopped = _stopped(lane)
        if stopped.state == LaneState.SUSPENDED:
            raise SuspendedError
        waiting = Delivery.objects.pending().filter(
            pk=_head(stopped), next_attempt_at__gt=timezone.now()
        )
        waiting.update(next_attempt_at=timezone.now())
        _go_on(stopped)
        _record(JournalKind.RETRIED, f"Retry now of {lane}.", stopped, actor=actor)


def skip_delivery(lane: Lane, *, actor: str, expected: int | None = None) -> int | None:
    """Cancel the stopping delivery, continue with the next, and return the id.

    Returns None if this delivery was settled, by the rejection that suspended the lane or
    meanwhile: then a SUSPENDED lane is only resumed, and so is a CONCURRENT subscriber's, whose
    endpoint is down all the same. Pass the delivery seen by the person as `expected`: no other,
    become the head since, is skipped. Raises NotBlockedError, also if the blocking delivery was
    settled meanwhile.
    """
    with transaction.atomic():
        stopped = _stopped(lane)
        if expected not in (None, stopped.delivery_id):
            raise NotBlockedError
        is_cancelled = bool(
            transitions.cancel_deliveries([_head(stopped)], actor=actor, reason="skipped")
        )
        if (
            not is_cancelled
            and stopped.state == LaneState.BLOCKED
            and not stopped.run_is_concurrent
        ):
            raise NotBlockedError
        _go_on(stopped)
        if is_cancelled:
            text = f"The message that stopped {lane} was skipped."
            _record(JournalKind.SKIPPED, text, stopped, actor=actor)
        else:
            _record(JournalKind.RESUMED, f"{lane} was resumed.", stopped, actor=actor)
    return stopped.delivery_id if is_cancelled else None


def resume_lane(lane: Lane, *, actor: str) -> None:
    """Resume a SUSPENDED lane with the suspending delivery. Raises NotSuspendedError."""
    try:
        with transaction.atomic():
            stopped = _stopped(lane)
            if stopped.state != LaneState.SUSPENDED:
                raise NotSuspendedError
            on_top = Delivery.objects.pending().filter(pk=_head(stopped))
            on_top.update(attempts_before=F("attempts"))
            _go_on(stopped)
            _record(JournalKind.RESUMED, f"{lane} was resumed.", stopped, actor=actor)
    except NotBlockedError:
        raise NotSuspendedError from None


def _stopped(lane: Lane) -> Lane:
    stopped = Lane.objects.filter(
        pk=lane.pk, state__in=(LaneState.BLOCKED, LaneState.SUSPENDED)
    ).first()
    if stopped is None or stopped.delivery_id is None:
        raise NotBlockedError
    return stopped


def _head(stopped: Lane) -> int:
    assert stopped.delivery_id is not None
    return stopped.delivery_id


def _go_on(stopped: Lane) -> None:
    """Make the lane and its endpoints due, unless the state has changed, and notify the senders."""
    changed = {"state": LaneState.BLOCKED, "next_try_at": timezone.now()}
    if stopped.state == LaneState.SUSPENDED:
        changed["since"] = timezone.now()
    if not Lane.objects.filter(pk=stopped.pk, state=stopped.state).update(**changed):
        raise NotBlockedError
    EndpointHealth.objects.filter(lane_id=stopped.pk).update(next_try_at=timezone.now())
    notifier.nudge_lanes(stopped.pk)
    # A suspended lane without anything else to send has no sender, so all are notified.
    transaction.on_commit(lambda: notifier.notify_of_work([stopped.pk]))


def _record(kind: JournalKind, text: str, stopped: Lane, *, actor: str) -> None:
    journal.record_entry(
        kind, text, actor=actor, delivery_id=stopped.delivery_id, lane_id=stopped.pk
    )
