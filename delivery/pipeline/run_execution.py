"""Execution of a run in this process, from the lock to the end.

Imports Arrow: only executing processes import this module. The state after each kill:

    lock ─▶ RUNNING ─▶ the step ─▶ DONE, FAILED, CANCELLED ─▶ lock gone
          1         2           3                          4

Killed at 1: the run is still waiting, for any process. At 2 and 3: the run is RUNNING without a
lock, which `cleanup` ends; of the step's work there is nothing or all, because the last act is a
transaction, and the next run detects which. At 4: the run has ended. A process without a connection
is interrupted (see `progress`), and cannot end a run presumed dead by another process: the UPDATE
finds no row.

A step unresponsive to the interruption is ended by force (see `watch`), which is a kill at 2 or 3
after the run's end is written. Before that, the server ends the sessions of the step and of the
workers: none of them can commit after the end, or keep the step's lock. The run's own lock goes
with the process.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from delivery.pipeline.watch import RunWatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = "inturn history"
LOST = "It lost the database. Unfinished work does not count: run it again."
# In which a forced end writes the run's end. The process ends then in any case.
FORCE_SECONDS = 0.6
FORCED_EXIT = 1
UNREPORTED = b"\nCommandError: The run did not end, and the database did not answer: killed.\n"


class StillRunningError(StepRefusedError):
    """A process presumed dead is still executing the step; it ends by itself."""


@dataclass(frozen=True, slots=True)
class ExecutedRun:
    """An executed run; `interrupted_by` is the interrupting signal, if any."""

    run: PipelineRun
    interrupted_by: signal.Signals | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHost:
    """The executing process of runs: `shown` receive their progress.

    With `sessions`, the runs share a Spark. `force` ends the process because a step does not react,
    and reports the run; without it, an unresponsive step goes on.
    """

    shown: Sequence[Progress] = ()
    sessions: SparkSessions | None = None
    force: Callable[[ExecutedRun], None] | None = None


def run_now(
    step: Step | str, *, options: Mapping[str, Any], actor: str, host: RunHost | None = None
) -> ExecutedRun:
    """Create and execute a run, or the waiting run of the kind; RunOpenError if it is running."""
    host = host or RunHost()
    now = timezone.now()
    with _connected() as database:
        try:
            with transaction.atomic():
                run = request_run(step, options=options, actor=actor, now=now)
                # No other process sees the run before it is RUNNING and locked.
                assert is_taken(database, run_lock(run.pk))
                runs.begin_run(run.pk, now=now)
        except runs.RunOpenError as error:
            ran = run_waiting(error.run.pk, host=host)
            if ran is None:
                raise
            return ran
        with interruptible() as interrupts:
            return _Execution(run, database, interrupts, host).executed()


def run_waiting(
    id: int, *, host: RunHost | None = None, gives_back: bool = False
) -> ExecutedRun | None:
    """Execute a waiting run; None if it is not waiting any more, or another process took it first.

    With `gives_back` a signal returns the run to WAITING instead of cancelling it. So a signal must
    not end the process once the run is RUNNING.
    """
    with _connected() as database, interruptible() as interrupts:
        if not is_taken(database, run_lock(id)) or not runs.begin_run(id, now=timezone.now()):
            return None
        run = PipelineRun.objects.get(pk=id)
        execution = _Execution(run, database, interrupts, host or RunHost(), gives_back=gives_back)
        return execution.executed()


@contextmanager
def _connected() -> Iterator[psycopg.Connection[Any]]:
    """Open the connection for locks; the server releases them soon after this machine vanishes."""
    with psycopg.connect(settings.conninfo(APPLICATION), autocommit=True) as database:
        database.execute(f"{SESSION};{TCP_TIMEOUTS}".encode())
        yield database
        release_locks(database)


class _Execution:
    """An execution of a RUNNING run, whose lock `database` holds."""

    def __init__(
        self,
        run: PipelineRun,
        database: psycopg.Connection[Any],
        interrupts: Interrupts,
        host: RunHost,
        *,
        gives_back: bool = False,
    ) -> None:
        self._run = run
        self._database = database
        self._interrupts = interrupts
        self._host = host
        self._gives_back = gives_back
        self._progress = RunProgress(run.pk, database, shown=host.shown)
        self._watch = RunWatch(self._progress, interrupts, archive_url=settings.archive_url())
        # Once the step is done. The shutdown of Spark may follow.
        self._done: Ending | None = None

    def executed(self) -> ExecutedRun:
        # If the server restarts during the step, the next statement on this connection would fail.
        connection.close()
        return self._ended(self._ending())

    def _ending(self) -> Ending | None:
        """Execute the step and return how it ended; None if it was interrupted before the end."""
        force = None if self._host.force is None else self._end_by_force
        try:
            with (
                self._interrupts.raising(),
                self._watch.watching(force),
                self._progress.followed(),
                self._job() as step_job,
            ):
                self._done = self._result(step_job)
        except (Stopped, KeyboardInterrupt):
            return self._done
        except Exception as error:  # noqa: BLE001 - any error must be reported to the person who waits
            if self._progress.interruption is not None:
                return None
            return Ending(
                state=RunState.FAILED,
                error=error_text.error_in_words(error),
                log=error_text.log_of(error),
            )
        return self._done

    def _result(self, step_job: StepJob) -> Ending:
        run = self._run
        _lock_step(run, step_job)
        if run.step != Step.EXPORT:
            words = "waiting until the archive is compacted"
            ledger.read_files(
                step_job.database, before_waiting=partial(step_job.progress.doing, words)
            )
        return Ending(
            state=RunState.DONE, result=steps.call_step(run.step, run.options, job=step_job)
        )

    @contextmanager
    def _job(self) -> Iterator[StepJob]:
        sessions = self._host.sessions
        with open_job(
            run_id=self._run.pk,
            conninfo=settings.conninfo(_application(self._run)),
            archive_url=settings.archive_url(),
            spark=settings.spark_settings(self._run.step, is_shared=sessions is not None),
            progress=self._progress,
            sessions=sessions,
        ) as step_job:
            start = step_job.start

            def start_and_listen() -> "SparkSession":
                session = start()
                # PySpark's own handler would cancel the JVM's jobs on a connection in use.
                self._interrupts.listen()
                return session

            step_job.start = start_and_listen
            yield step_job
            release_locks(step_job.database)

    def _ended(self, ending: Ending | None) -> ExecutedRun:
        """Write the run's end, None for an interruption's, and return the run."""
        interrupted_by = None
        if ending is not None:
            runs.end_run(self._run, ending, now=timezone.now())
        else:
            self._end_interrupted()
            if self._progress.interruption is None:
                interrupted_by = self._interrupts.arrived()
        self._run.refresh_from_db()
        return ExecutedRun(self._run, interrupted_by)

    def _end_interrupted(self) -> None:
        interruption = self._progress.interruption
        errors = {
            Interruption.LOST: LOST,
            Interruption.SILENT: self._watch.silence,
        }
        if interruption in errors:
            ending = Ending(state=RunState.FAILED, error=errors[interruption])
            runs.end_run(self._run, ending, now=timezone.now())
            return
        gives_back = self._gives_back and interruption is None
        # Not if a person stopped the run just before.
        if not (
            gives_back
            and runs.give_back(
                self._run, reason="Inturn stops; it begins again with the next start."
            )
        ):
            runs.end_run(self._run, Ending(state=RunState.CANCELLED), now=timezone.now())

    def _end_by_force(self) -> None:
        """Write the run's end, and end the process, whatever the main thread does."""
        latest = threading.Timer(FORCE_SECONDS, _exit_unreported)
        latest.daemon = True
        latest.start()
        try:
            _end_sessions(self._database, _application(self._run))
            executed = self._ended(self._done)
            assert self._host.force is not None
            self._host.force(executed)
        finally:
            os._exit(FORCED_EXIT)


def _exit_unreported() -> None:
    os.write(2, UNREPORTED)
    os._exit(FORCED_EXIT)


def _application(run: PipelineRun) -> str:
    """Return the name of the database sessions of a run's step and workers."""
    return f"{APPLICATION} {run}"


def _end_sessions(database: psycopg.Connection[Any], application: str) -> None:
    """End the sessions of the name, and wait until they have ended."""
    database.execute(
        "SELECT pg_terminate_backend(pid, 500) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = %s",
        [application],
    )


def _lock_step(run: PipelineRun, step_job: StepJob) -> None:
    if run.step in SOLE_STEPS and not is_taken(step_job.database, step_lock(run.step)):
        raise StillRunningError(
            f"An earlier {run.get_step_display()}, whose run was presumed dead, is still running. "
            "It ends by itself within seconds: run it again then."
        )
