"""Schedules: each requests its run when it is due, once in the whole installation."""

import logging
from datetime import datetime, timedelta

from django.db import transaction

from delivery.models import PipelineSchedule, Step
from delivery.pipeline.request import request_run
from delivery.pipeline.runs import RunOpenError

log = logging.getLogger(__name__)

# In the order in which the steps build on each other.
_ORDER = {step: place for place, step in enumerate(Step)}


def request_due_runs(now: datetime) -> int:
    """Request the runs that are due; return their number.

    A step with an open run is skipped. Missed times lead to one run.
    """
    with transaction.atomic():
        due = PipelineSchedule.objects.filter(is_on=True, next_at__lte=now).select_for_update(
            skip_locked=True
        )
        ordered = sorted(due, key=lambda schedule: _ORDER[Step(schedule.step)])
        for schedule in ordered:
            _fire(schedule, now=now)
    return len(ordered)


def _fire(schedule: PipelineSchedule, *, now: datetime) -> None:
    schedule.next_at = next_after(schedule.next_at, every_minutes=schedule.every_minutes, now=now)
    schedule.save(update_fields=["next_at"])
    try:
        request_run(schedule.step, now=now)
    except RunOpenError as error:
        log.info(
            "a scheduled run is not needed", extra={"step": schedule.step, "because": str(error)}
        )


def next_after(due_at: datetime, *, every_minutes: int, now: datetime) -> datetime:
    """Return the first time after now that keeps the rhythm."""
    every = timedelta(minutes=every_minutes)
    return due_at + every * ((now - due_at) // every + 1)
