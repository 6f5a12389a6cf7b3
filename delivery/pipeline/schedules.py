"""Schedules: each requests a run when it is due, once in the whole installation.

A verify checks the whole history if no run has for HISTORY_WHOLE_DAYS: damage to older files is
found by nothing else.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from delivery.models import PipelineRun, PipelineSchedule, RunState, Step
from delivery.pipeline import settings
from delivery.pipeline.request import request_run
from delivery.pipeline.runs import RunOpenError

log = logging.getLogger(__name__)

# In the order in which the steps build on each other.
_ORDER = {step: place for place, step in enumerate(Step)}


def request_due_runs(now: datetime) -> int:
    """Request the due runs; return their number.

    A step with an open run is skipped. Missed times lead to a single run.
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
        request_run(schedule.step, options=_options(schedule, now=now), now=now)
    except RunOpenError as error:
        log.info(
            "a scheduled run is not needed", extra={"step": schedule.step, "because": str(error)}
        )


def _options(schedule: PipelineSchedule, *, now: datetime) -> dict[str, Any]:
    days = settings.whole_days()
    if schedule.step != Step.VERIFY or not days:
        return {}
    newest = PipelineRun.objects.filter(step=Step.VERIFY).order_by("-id").first()
    if newest is not None and newest.state == RunState.FAILED and newest.options.get("whole"):
        # Check at least the new rows, before the next try.
        return {}
    # Schedules fire a moment late: the run of so many days ago is not younger by chance.
    since = now - timedelta(days=days) + timedelta(minutes=schedule.every_minutes) / 2
    checked_all = PipelineRun.objects.filter(
        step=Step.VERIFY, state=RunState.DONE, result__since=None, asked_at__gte=since
    )
    return {} if checked_all.exists() else {"whole": True}


def next_after(due_at: datetime, *, every_minutes: int, now: datetime) -> datetime:
    """Return the first time after now in the rhythm."""
    every = timedelta(minutes=every_minutes)
    return due_at + every * ((now - due_at) // every + 1)
