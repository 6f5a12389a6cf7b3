"""The job of a step: Spark session, PostgreSQL connection, archive, and a receiver of progress."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import psycopg

from delivery.database.session_settings import SESSION
from delivery.history.archive.archive import Archive
from delivery.history.archive.identity import require_archive
from delivery.history.archive.ledger import File
from delivery.history.archive.small_files import ArchiveError
from delivery.history.archive.storage import require_storage
from delivery.history.schemas import Table
from delivery.history.spark.session import Spark, SparkSessions
from delivery.history.spark.workers import Task, run_here, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Connection = psycopg.Connection[Any]
# This process exports so many rows of usual size in a second or two; Spark takes three to start.
FEW_ROWS = 50_000
# The first run ends by writing the cache of classes, which takes about as long as the run.
_ENDINGS = {False: "stopping Spark", True: "stopping Spark (first run: saves its class cache)"}


class Stopped(Exception):  # noqa: N818 - nothing is wrong: a person wants the run to stop
    """Raised by the receiver of progress to end the run; unfinished work leaves no trace."""


class StepRefusedError(ValueError):
    """The step cannot be done as things are; the message, for people, says why.

    Nothing is wrong inside Inturn, so the run's log has no traceback.
    """


class Progress(Protocol):
    """Receives a step's progress; any call may raise Stopped."""

    def doing(self, text: str) -> None:
        """Report the current activity, for people: `exporting 2026-11-22, 10:00 to 11:00`."""

    def advance(self, done: int, count: int | None) -> None:
        """Report how many rows are done, and how many there are in all, if known."""


@dataclass(slots=True, kw_only=True)
class StepJob:
    """A run; `conninfo` is libpq's, for further connections, also from Spark's workers.

    With `is_local` those workers are processes of this machine.
    """

    run_id: int
    database: Connection
    conninfo: str = field(repr=False)
    archive: Archive
    progress: Progress
    is_local: bool = False
    start: Callable[[], "SparkSession"] = field(repr=False)

    @property
    def spark(self) -> "SparkSession":
        """The session, started at the first use, so a run with nothing to do needs no JVM."""
        return self.start()

    def read_files(
        self, table: Table, files: Iterable[File], *, names: Sequence[str] = ()
    ) -> "DataFrame":
        """Return the rows of these files of the archive; `names` are columns, all if none."""
        # Here and below: a run without Spark does not load it.
        from delivery.history.archive import arrow_files

        return arrow_files.read_files(self.spark, self.archive, table, files, names=names)

    def write_files(self, frame: "DataFrame", folder: str) -> None:
        """Write a frame as Parquet files of the archive, in place of the folder's."""
        from delivery.history.archive import arrow_files

        arrow_files.write_files(frame, self.archive, folder)

    def run_tasks(
        self, tasks: Sequence[Task], do: Callable[[Task], Any], *, rows: int
    ) -> list[Any]:
        """Run every task, for about so many rows in all; return the results, as JSON values.

        Spark's workers run them, unless Spark's start would take longer than the work.
        """
        if self.is_local and rows <= FEW_ROWS:
            return run_here(tasks, do)
        return run_tasks(self.spark, tasks, do)


@contextmanager
def open_job(
    *,
    run_id: int,
    conninfo: str,
    archive_url: str,
    spark: Spark,
    progress: Progress,
    sessions: SparkSessions | None = None,
) -> Iterator[StepJob]:
    """Yield a job with a connection; everything started by it ends with it, except `sessions`.

    Raises ReachError if the archive's storage does not answer, and StepRefusedError if the archive
    in this place is not the database's.
    """
    require_storage(archive_url)
    with ExitStack() as ending:
        database = ending.enter_context(psycopg.connect(conninfo, autocommit=True))
        database.execute(SESSION)
        used: list[SparkSession] = []

        def start() -> "SparkSession":
            if not used:
                progress.doing("starting Spark")
                end = _ENDINGS[spark.saves_classes]
                kept = sessions or ending.enter_context(SparkSessions())
                used.append(ending.enter_context(kept.used(spark)))
                progress.doing("Spark has started")
                if sessions is None:
                    ending.callback(progress.doing, end)
            return used[0]

        archive = Archive(archive_url)
        try:
            require_archive(database, archive.url)
        except ArchiveError as error:
            raise StepRefusedError(str(error)) from error
        yield StepJob(
            run_id=run_id,
            database=database,
            conninfo=conninfo,
            archive=archive,
            progress=progress,
            is_local=spark.is_local,
            start=start,
        )
