"""The state changes of runs, each a conditional UPDATE.

False means: the run was not in the expected state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Value
from django.db.models.functions import Concat

from delivery.models import RUN_OPEN, SOLE_STEPS, PipelineRun, Replay, ReplayState, RunState, Step
from delivery.models.moment import Clock
from subscriptions.values.times import time_text


class RunOpenError(Exception):
    """The step already has an open run; the message names it, for people."""

    def __init__(self, run: PipelineRun) -> None:
        self.run = run
        if run.started_at is not None:
            message = (
                f"{run} has been running since {time_text(run.started_at)}; it continues by itself."
            )
        else:
            message = f"{run} was requested at {time_text(run.asked_at)} and waits for its turn."
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended; `error` is the reason for people, `log` is appended to the run's log."""

    state: RunState
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    log: str = ""


def create_run(
    step: Step | str, *, options: Mapping[str, Any], actor: str, now: datetime
) -> PipelineRun:
    """Create a waiting run; raises RunOpenError."""
    try:
        with transaction.atomic():
            return PipelineRun.objects.create(
                step=step, options=dict(options), asked_by=actor, asked_at=now
            )
    except IntegrityError:
        run = PipelineRun.objects.filter(step=step, step__in=SOLE_STEPS, state__in=RUN_OPEN).first()
        if run is None:
            raise
        raise RunOpenError(run) from None


def stop_run(run: PipelineRun, *, actor: str) -> bool:
    """Stop a run for a person; False if it had ended.

    A waiting run ends at once, a running one within seconds, by the process. The instance passed in
    is not refreshed.
    """
    waiting = PipelineRun.objects.filter(pk=run.pk, state=RunState.WAITING)
    running = PipelineRun.objects.filter(pk=run.pk, state=RunState.RUNNING)
    log = Concat("log", Value(f"Stopped by {actor}.\n"))
    with transaction.atomic():
        if waiting.update(state=RunState.CANCELLED, ended_at=Clock(), log=log):
            _end_replay(run, state=RunState.CANCELLED, error="")
            return True
        return bool(running.update(is_stopping=True, log=log))


def begin_run(id: int, *, now: datetime) -> bool:
    """Set a waiting run to RUNNING, from the start; the caller holds the run's lock."""
    waiting = PipelineRun.objects.filter(pk=id, state=RunState.WAITING)
    return bool(
        waiting.update(state=RunState.RUNNING, started_at=now, doing="", done=0, count=None)
    )


def end_run(run: PipelineRun, ending: Ending, *, now: datetime) -> bool:
    """End a RUNNING run, and the run's replay if the run did not finish the selection."""
    running = PipelineRun.objects.filter(pk=run.pk, state=RunState.RUNNING)
    with transaction.atomic():
        is_ended = running.update(
            state=ending.state,
            ended_at=now,
            result=dict(ending.result),
            error=ending.error,
            log=Concat("log", Value(ending.log)),
        )
        if is_ended and ending.state != RunState.DONE:
            _end_replay(run, state=ending.state, error=ending.error)
    return bool(is_ended)


def give_back(run: PipelineRun, *, reason: str) -> bool:
    """Return a RUNNING run to WAITING; the caller holds the lock and releases it afterwards."""
    running = PipelineRun.objects.filter(pk=run.pk, state=RunState.RUNNING, is_stopping=False)
    log = Concat("log", Value(f"{reason}\n"))
    return bool(
        running.update(
            state=RunState.WAITING, started_at=None, doing="", done=0, count=None, log=log
        )
    )


def refuse_run(run: PipelineRun, *, error: str, now: datetime) -> bool:
    """End a waiting run that cannot be started."""
    waiting = PipelineRun.objects.filter(pk=run.pk, state=RunState.WAITING)
    with transaction.atomic():
        is_ended = waiting.update(state=RunState.FAILED, ended_at=now, error=error)
        if is_ended:
            _end_replay(run, state=RunState.FAILED, error=error)
    return bool(is_ended)


def _end_replay(run: PipelineRun, *, state: RunState, error: str) -> None:
    """End the replay whose selection was this run: nobody waits for an ended run."""
    if run.step != Step.REPLAY:
        return
    selecting = Replay.objects.filter(pk=run.options.get("replay"), state=ReplayState.SELECTING)
    ended = ReplayState.CANCELLED if state == RunState.CANCELLED else ReplayState.FAILED
    selecting.update(state=ended, error=error, ended_at=Clock())
