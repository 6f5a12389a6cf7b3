"""Requests for a run of the pipeline."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from delivery.models import RUN_OPEN, PipelineRun, RunState, Step
from delivery.pipeline import runs
from delivery.pipeline.cleanup import end_orphaned_runs
from delivery.pipeline.locks import request_lock

# Of a step whose runs `request_distinct_run` requests. Runs are executed in turn, so each waiting
# run delays the next export.
MOST_WAITING = 5


class TooManyRunsError(Exception):
    """MOST_WAITING runs of the step are waiting; the message has the remedy, for people."""

    def __init__(self, step: Step) -> None:
        super().__init__(
            f"{MOST_WAITING} runs of the step {step.label} are waiting already. Request the run "
            "again when one of them has begun, or stop one of them under Pipeline runs."
        )


def request_run(
    step: Step | str, *, options: Mapping[str, Any] | None = None, actor: str = "", now: datetime
) -> PipelineRun:
    """Create a waiting run; an empty `actor` means the schedule.

    A step of SOLE_STEPS has at most one open run in the whole installation: raises RunOpenError for
    a second run. A run whose process was killed no longer counts as open.
    """
    end_orphaned_runs(now)
    return runs.create_run(step, options=options or {}, actor=actor, now=now)


def request_distinct_run(
    step: Step,
    *,
    options: Mapping[str, Any],
    is_same: Callable[[PipelineRun], bool],
    actor: str,
    now: datetime,
) -> PipelineRun:
    """Return the same run if open, or create a waiting run; raises TooManyRunsError.

    Two requests at the same time wait for each other, until the first transaction ends. A stopping
    run is never the same: it has no result.
    """
    end_orphaned_runs(now)
    with transaction.atomic():
        _take_request_lock(step)
        unended = PipelineRun.objects.filter(step=step, state__in=RUN_OPEN).defer("log")
        open_runs = list(unended.order_by("id"))
        for run in open_runs:
            if not run.is_stopping and is_same(run):
                return run
        if sum(run.state == RunState.WAITING for run in open_runs) >= MOST_WAITING:
            raise TooManyRunsError(step)
        return runs.create_run(step, options=options, actor=actor, now=now)


def _take_request_lock(step: Step) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [request_lock(step)])
