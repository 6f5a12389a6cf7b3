"""Execution of a run in this process, from its lock to its end.

Imports Arrow: only processes that execute runs import this module. The state after each kill:

    lock ─▶ RUNNING ─▶ the step ─▶ DONE, FAILED, CANCELLED ─▶ lock gone
          1         2           3                          4

Killed at 1: the run is still waiting, for any process. At 2 and 3: the run is RUNNING without a
lock, which `cleanup` marks as FAILED; of the step's work there is nothing or all, because its last
act is one transaction, and the next run detects which. At 4: the run has ended. A process that
loses its connection is interrupted (see `progress`), and cannot end a run that another process has
presumed dead: its UPDATE finds no row.
"""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from django.db import connection, transaction
from django.utils import timezone

from delivery.database.connections import TCP_TIMEOUTS
from delivery.database.session_settings import SESSION
from delivery.history.archive import ledger
from delivery.history.job import Progress, StepJob, StepRefusedError, Stopped, open_job
from delivery.history.spark.session import SparkSessions
from delivery.models import SOLE_STEPS, PipelineRun, RunState, Step
from delivery.pipeline import error_text, runs, settings, steps
from delivery.pipeline.interrupts import Interrupts, interruptible
from delivery.pipeline.locks import is_taken, release_locks, run_lock, step_lock
from delivery.pipeline.progress import Interruption, RunProgress
from delivery.pipeline.request import request_run
from delivery.pipeline.runs import Ending

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = "inturn history"


class StillRunningError(StepRefusedError):
    """A process presumed dead is still executing the step; it ends by itself."""


@dataclass(frozen=True, slots=True)
class ExecutedRun:
    """An executed run; `interrupted_by` is the signal that interrupted it, if any."""

    run: PipelineRun
    interrupted_by: signal.Signals | None = None


def run_now(
    step: Step | str,
    *,
    options: Mapping[str, Any],
    actor: str,
    shown: Sequence[Progress] = (),
    sessions: SparkSessions | None = None,
) -> ExecutedRun:
    """Create a run and execute it, or the waiting run of its kind; RunOpenError if that is running.

    With `sessions`, several runs of this process share one Spark.
    """
    now = timezone.now()
    with _connected() as database:
        try:
            with transaction.atomic():
                run = request_run(step, options=options, actor=actor, now=now)
                # No other process sees the run before it is RUNNING and locked.
                assert is_taken(database, run_lock(run.pk))
                runs.begin_run(run.pk, now=now)
        except runs.RunOpenError as error:
            ran = run_waiting(error.run.pk, shown=shown, sessions=sessions)
            if ran is None:
                raise
            return ran
        with interruptible() as interrupts:
            return _run(run, database, interrupts, shown=shown, sessions=sessions)


def run_waiting(
    id: int,
    *,
    shown: Sequence[Progress] = (),
    gives_back: bool = False,
    sessions: SparkSessions | None = None,
) -> ExecutedRun | None:
    """Execute a waiting run; None if it is not waiting any more, or another process took it first.

    With `gives_back` a signal returns the run to WAITING instead of cancelling it. So a signal must
    not end the process once the run is RUNNING.
    """
    with _connected() as database, interruptible() as interrupts:
        if not is_taken(database, run_lock(id)) or not runs.begin_run(id, now=timezone.now()):
            return None
        run = PipelineRun.objects.get(pk=id)
        return _run(
            run, database, interrupts, shown=shown, gives_back=gives_back, sessions=sessions
        )


@contextmanager
def _connected() -> Iterator[psycopg.Connection[Any]]:
    """Open the connection for locks; the server releases them soon after this machine vanishes."""
    with psycopg.connect(settings.conninfo(APPLICATION), autocommit=True) as database:
        database.execute(f"{SESSION};{TCP_TIMEOUTS}".encode())
        yield database
        release_locks(database)


def _run(
    run: PipelineRun,
    database: psycopg.Connection[Any],
    interrupts: Interrupts,
    *,
    shown: Sequence[Progress],
    gives_back: bool = False,
    sessions: SparkSessions | None,
) -> ExecutedRun:
    # If the server restarts during the step, the next statement on this connection would fail.
    connection.close()
    progress = RunProgress(run.pk, database, shown=shown)
    ending = _ending(run, progress, interrupts, sessions)
    if ending is not None:
        runs.end_run(run, ending, now=timezone.now())
        run.refresh_from_db()
        return ExecutedRun(run)
    _end_interrupted(run, progress, gives_back=gives_back)
    run.refresh_from_db()
    return ExecutedRun(run, _signal(progress, interrupts))


def _ending(
    run: PipelineRun, progress: RunProgress, interrupts: Interrupts, sessions: SparkSessions | None
) -> Ending | None:
    """Execute the step and return how it ended; None if it was interrupted before its end."""
    ending: Ending | None = None
    try:
        with (
            interrupts.raising(),
            progress.followed(),
            _job(run, progress, interrupts, sessions) as step_job,
        ):
            _lock_step(run, step_job)
            if run.step != Step.EXPORT:
                words = "waiting until the archive is compacted"
                ledger.read_files(step_job.database, before_waiting=partial(progress.doing, words))
            ending = Ending(
                state=RunState.DONE, result=steps.call_step(run.step, run.options, job=step_job)
            )
    except (Stopped, KeyboardInterrupt):
        # During the shutdown of Spark, which takes seconds, the step is done and `ending` is set.
        return ending
    except Exception as error:  # noqa: BLE001 - any error must be reported to the person who waits
        if progress.interruption is not None:
            return None
        return Ending(
            state=RunState.FAILED,
            error=error_text.error_in_words(error),
            log=error_text.log_of(error),
        )
    return ending


@contextmanager
def _job(
    run: PipelineRun, progress: RunProgress, interrupts: Interrupts, sessions: SparkSessions | None
) -> Iterator[StepJob]:
    with open_job(
        run_id=run.pk,
        conninfo=settings.conninfo(f"{APPLICATION} {run}"),
        archive_url=settings.archive_url(),
        spark=settings.spark_settings(run.step, is_shared=sessions is not None),
        progress=progress,
        sessions=sessions,
    ) as step_job:
        start = step_job.start

        def start_and_listen() -> "SparkSession":
            session = start()
            # PySpark's own handler would cancel the jobs of its JVM on a connection that is in use.
            interrupts.listen()
            return session

        step_job.start = start_and_listen
        yield step_job
        release_locks(step_job.database)


def _lock_step(run: PipelineRun, step_job: StepJob) -> None:
    if run.step in SOLE_STEPS and not is_taken(step_job.database, step_lock(run.step)):
        raise StillRunningError(
            f"An earlier {run.get_step_display()}, whose run was presumed dead, is still running. "
            "It ends by itself within seconds: run it again then."
        )


def _end_interrupted(run: PipelineRun, progress: RunProgress, *, gives_back: bool) -> None:
    if progress.interruption == Interruption.LOST:
        error = "It lost the database. Unfinished work does not count: run it again."
        runs.end_run(run, Ending(state=RunState.FAILED, error=error), now=timezone.now())
        return
    gives_back = gives_back and progress.interruption is None
    # Not if a person stopped the run just before.
    if not (
        gives_back
        and runs.give_back(run, reason="Inturn stops; it begins again with the next start.")
    ):
        runs.end_run(run, Ending(state=RunState.CANCELLED), now=timezone.now())


def _signal(progress: RunProgress, interrupts: Interrupts) -> signal.Signals | None:
    return interrupts.number if progress.interruption is None else None
