"""The loop of the pipeline: creates the scheduled runs, and runs the waiting runs, one per machine.

Several machines may run it. Each run has a separate process; the loop itself loads only Django.
"""

import logging
import time
from contextlib import suppress
from datetime import datetime

from django.db import Error, connection
from django.utils import timezone

from delivery.cluster.named_connections import connections_of
from delivery.cluster.stop_event import stopping
from delivery.database import queries
from delivery.database.connections import TCP_TIMEOUTS
from delivery.models import SOLE_STEPS, PipelineRun, RunState
from delivery.pipeline import cleanup, runs, schedules
from delivery.pipeline.child import Child
from subscriptions.database_away import is_away

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
# A run whose process ends before the run begins is started again, this many times, after growing
# pauses.
MOST_STARTS = 4
NOT_BEGUN = (
    "It could not be started ({starts} times; exit code {code}): "
    "the cluster's log says why. Then run it again."
)


class Loop:
    """The loop of a worker."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._failed_starts = 0
        self._paused_until = 0.0
        self._is_stopping = False

    def run(self) -> None:
        """Loop until Inturn stops; then stop the current run."""
        try:
            while not stopping.is_set():
                self._turn()
                stopping.wait(POLL_SECONDS)
        finally:
            if self._child is not None and self._child.stop():
                with suppress(Error):
                    cleanup.return_killed_run(self._child.run_id)

    def _turn(self) -> None:
        now = timezone.now()
        try:
            if self._child is None and not is_turn_due(now):
                return
            cleanup.end_orphaned_runs(now)
            if schedules.request_due_runs(now):
                cleanup.remove_old_runs(now)
                cleanup.forget_reports(now)
            self._supervise_child()
        except Error as error:
            if not is_away(error):
                raise
            log.warning("the pipeline's turn was interrupted", extra={"error": str(error)})
            # The next turn opens a new connection.
            connection.close()

    def _supervise_child(self) -> None:
        if self._child is not None:
            code = self._child.exit_code
            if code is None:
                self._kill_if_stuck(self._child)
                return
            self._judge(self._child.run_id, code)
            self._child = None
        if time.monotonic() >= self._paused_until and (run := next_run()) is not None:
            self._child, self._is_stopping = Child(run.pk), False

    def _kill_if_stuck(self, child: Child) -> None:
        """Kill a process stopped by a person before the last turn: it ends sooner by itself."""
        was_stopping, self._is_stopping = self._is_stopping, is_stopping(child.run_id)
        if was_stopping and self._is_stopping:
            child.kill()

    def _judge(self, run_id: int, code: int) -> None:
        """Pause after a process ended before the run began; refuse the run after several."""
        run = PipelineRun.objects.filter(pk=run_id, state=RunState.WAITING).first()
        if run is None:
            self._failed_starts = 0
            return
        self._failed_starts += 1
        self._paused_until = time.monotonic() + 2.0**self._failed_starts
        log.error("a run could not be begun", extra={"run": run_id, "exit_code": code})
        if self._failed_starts >= MOST_STARTS:
            error = NOT_BEGUN.format(starts=self._failed_starts, code=code)
            runs.refuse_run(run, error=error, now=timezone.now())
            self._failed_starts = 0


def is_turn_due(now: datetime) -> bool:
    """Return whether a run is open or a schedule due: a turn without a child does nothing else."""
    return queries.is_true("is_turn_due", {"now": now})


def is_stopping(run_id: int) -> bool:
    """Return whether a person stopped the run, which has not ended yet."""
    return PipelineRun.objects.filter(pk=run_id, state=RunState.RUNNING, is_stopping=True).exists()


def next_run() -> PipelineRun | None:
    """Return the run that has waited longest.

    Of SOLE_STEPS, which build on each other, a single step runs at a time in the whole
    installation.
    """
    waiting = PipelineRun.objects.filter(state=RunState.WAITING).order_by("id")
    if PipelineRun.objects.filter(state=RunState.RUNNING, step__in=SOLE_STEPS).exists():
        waiting = waiting.exclude(step__in=SOLE_STEPS)
    return waiting.first()


def run_pipeline() -> None:
    with connections_of("pipeline", settings=TCP_TIMEOUTS):
        Loop().run()
