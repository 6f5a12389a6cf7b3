"""The progress of a run.

A thread writes it into the run's row twice a second, and checks for a stop. A step reports progress
in the step's thread, without waiting for the database. The writing thread uses the connection of
the run's lock. When this connection is lost, or when a person stops the run, the thread interrupts
the step, even in a long Spark job: by SIGTERM, for which `interrupts` raises KeyboardInterrupt. A
step may be interrupted anywhere, as it may be killed at any instant; but only once: a second
exception would cut short the shutdown of Spark by the first. A step going on nevertheless is ended
by `watch`.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import psycopg

from delivery.database.statements import statement
from delivery.history.job import Progress
from delivery.pipeline.error_text import storable

REPORT_SECONDS = 0.5


class Interruption(Enum):
    """The reason why the step was interrupted by us."""

    PERSON = "a person wants the run to stop"
    LOST = "the connection that holds the run's lock is lost, or the run was presumed dead"
    SILENT = "the archive's storage does not answer any more"


class RunProgress:
    """Receives a step's progress; writes it to the run's row, and at once to `shown`.

    Use `followed` within `interruptible`.
    """

    def __init__(
        self, run_id: int, database: psycopg.Connection[Any], *, shown: Sequence[Progress] = ()
    ) -> None:
        self.interruption: Interruption | None = None
        self._run_id = run_id
        self._database = database
        self._shown = shown
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._doing = self._log = ""
        self._done = 0
        self._count: int | None = None

    def doing(self, text: str) -> None:
        text = storable(text)
        with self._lock:
            self._doing = text
            self._log += log_line(text)
        for receiver in self._shown:
            receiver.doing(text)

    def advance(self, done: int, count: int | None) -> None:
        with self._lock:
            self._done, self._count = done, count
        for receiver in self._shown:
            receiver.advance(done, count)

    def interrupt(self, interruption: Interruption) -> None:
        """Interrupt the main thread, unless done already; for any other thread."""
        with self._lock:
            if self.interruption is not None:
                return
            self.interruption = interruption
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGTERM)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Write progress during the block, which KeyboardInterrupt may end; main thread only."""
        thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
            self._report()

    def _follow(self) -> None:
        while not self._is_over.wait(REPORT_SECONDS):
            interruption = self._report()
            if interruption is not None:
                self.interrupt(interruption)
                return

    def _report(self) -> Interruption | None:
        with self._lock:
            log, self._log = self._log, ""
            values = {"doing": self._doing, "done": self._done, "count": self._count, "log": log}
        try:
            row = self._database.execute(
                statement("record_progress").encode(), {"id": self._run_id, **values}
            ).fetchone()
        except psycopg.OperationalError:
            return Interruption.LOST
        if row is None:
            return Interruption.LOST
        return Interruption.PERSON if row[0] else None


def log_line(text: str) -> str:
    """Return a line of a run's log."""
    return f"{datetime.now(UTC):%H:%M:%S} {text}\n"
