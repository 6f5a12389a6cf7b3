"""A blocked lane as its sender would have left it."""

from datetime import timedelta

from django.utils import timezone

from delivery.models import Delivery, Lane, LaneState


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
    return Lane.objects.get(pk=head.lane.pk)
