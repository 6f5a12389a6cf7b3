"""Lanes that stop and go on, and the turns of the chores that watch them."""

from datetime import timedelta
from typing import Any

import orjson
from django.db import transaction
from django.utils import timezone

from delivery.incidents import watching
from delivery.models import (
    Delivery,
    FailureNotice,
    Incident,
    IncidentRule,
    Lane,
    LaneState,
    Message,
    Status,
)
from delivery.publishing import failures
from tests.support import factories


def block(head: Delivery, *, minutes: float = 13, reason: str = "500: oops") -> Lane:
    """Block the lane by its head, as its sender does, since so many minutes."""
    assert head.lane is not None
    Lane.objects.filter(pk=head.lane.pk).update(
        state=LaneState.BLOCKED,
        since=timezone.now() - timedelta(minutes=minutes),
        reason=reason,
        delivery_id=head.pk,
    )
    return Lane.objects.get(pk=head.lane.pk)


def unblock(lane: Lane) -> None:
    Lane.objects.filter(pk=lane.pk).update(state=LaneState.IDLE, reason="", delivery_id=None)


def turn(*, is_thorough: bool = True) -> int:
    """Do a turn of the duty, as the chores do."""
    with transaction.atomic():
        return watching.add_failures() + watching.watch_incidents(
            timezone.now(), is_thorough=is_thorough
        )


def rule(kind: str, **fields: Any) -> None:
    assert IncidentRule.objects.filter(pk=kind).update(**fields) == 1


def pass_time(incident: Incident, seconds: float) -> None:
    """Move the times of an incident back, as if so many seconds had passed."""
    incident.refresh_from_db()
    for name in ("first_at", "absent_since", "opened_at", "announced_at"):
        moment = getattr(incident, name)
        if moment is not None:
            setattr(incident, name, moment - timedelta(seconds=seconds))
    incident.save()


def fail(status: Status = Status.REJECTED, **fields: Any) -> Delivery:
    """Create a failure that is reported."""
    row = factories.delivery(status, **fields)
    FailureNotice.objects.create(delivery_id=row.pk, number=row.attempts)
    with transaction.atomic():
        failures.publish_notices(limit=100)
    return row


def reported(event: str) -> list[dict[str, Any]]:
    messages = Message.objects.filter(event_type__name=f"Inturn.Incident.{event}").order_by("id")
    return [orjson.loads(bytes(message.body)) for message in messages]
