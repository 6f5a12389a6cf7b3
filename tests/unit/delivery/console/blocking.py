"""A stopped lane as its sender would have left it."""

from datetime import timedelta

from django.utils import timezone

from delivery.models import Delivery, Lane, LaneState
from tests.support import factories


def block(head: Delivery) -> Lane:
    now = timezone.now()
    assert head.lane is not None
    Lane.objects.filter(pk=head.lane.pk).update(
        state=LaneState.BLOCKED,
        since=now - timedelta(minutes=13),
        reason="unreachable: connection refused",
        delivery_id=head.pk,
        failures=4,
        next_try_at=now + timedelta(seconds=40),
    )
    factories.endpoint_down(
        head,
        since=now - timedelta(minutes=13),
        reason="unreachable: connection refused",
        failures=4,
        next_try_at=now + timedelta(seconds=40),
    )
    return Lane.objects.get(pk=head.lane.pk)


def suspend(top: Delivery, *, probes_in: timedelta | None = None) -> Lane:
    """Suspend the lane by this delivery; it waits for a person, unless it is probed."""
    now = timezone.now()
    assert top.lane is not None
    Lane.objects.filter(pk=top.lane.pk).update(
        state=LaneState.SUSPENDED,
        since=now - timedelta(hours=2),
        reason="500: out of order",
        delivery_id=top.pk,
        failures=5,
        next_try_at=None if probes_in is None else now + probes_in,
    )
    return Lane.objects.get(pk=top.lane.pk)
