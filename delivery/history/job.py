"""What a step of the pipeline is given: a Spark session, a connection to PostgreSQL, the archive, and whom to tell how far it is."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import psycopg

from delivery.history.archive.archive import Archive
from delivery.history.spark.session import Spark, SparkSessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Connection = psycopg.Connection[Any]
# Writing that down takes as long as a run.
_ENDING = "ending Spark, which the first time writes down what makes its next start quick"


class Stopped(Exception):  # noqa: N818 - nothing is wrong: a person wants the run to stop
    """Raised by whoever is told of progress, when the run is to end; what a step has not finished leaves no trace."""


class Progress(Protocol):
    """Whom a step tells how far it is; any call may raise Stopped."""

    def doing(self, text: str) -> None:
        """Say what it is at now, for people: `exporting 2026-11-22, 10:00 to 11:00`."""

    def advance(self, done: int, count: int | None) -> None:
        """Say how many rows are done, of how many in all as far as that is known."""


@dataclass(slots=True, kw_only=True)
class StepJob:
    """One run. `conninfo` is libpq's, for more connections to the same database, also from Spark's workers."""

    run_id: int
    database: Connection
    conninfo: str
    archive: Archive
    progress: Progress
    start: Callable[[], "SparkSession"] = field(repr=False)

    @property
    def spark(self) -> "SparkSession":
        """The session; started when it is first asked for, so that a run with nothing to do costs no JVM."""
        return self.start()


@contextmanager
def job(
    *,
    run_id: int,
    conninfo: str,
    archive_url: str,
    spark: Spark,
    progress: Progress,
    sessions: SparkSessions | None = None,
) -> Iterator[StepJob]:
    """Yield a job with a connection of its own; everything it started ends with it, but for what is of `sessions`."""
    with ExitStack() as ending:
        database = ending.enter_context(psycopg.connect(conninfo, autocommit=True))
        # The archive's days are UTC, whatever the server's time zone.
        database.execute("SET TIME ZONE 'UTC'")
        used: list[SparkSession] = []

        def start() -> "SparkSession":
            if not used:
                progress.doing("starting Spark")
                kept = sessions or ending.enter_context(SparkSessions())
                used.append(ending.enter_context(kept.used(spark)))
                progress.doing("Spark has started")
                if sessions is None:
                    ending.callback(progress.doing, _ENDING)
            return used[0]

        yield StepJob(
            run_id=run_id,
            database=database,
            conninfo=conninfo,
            archive=Archive(archive_url),
            progress=progress,
            start=start,
        )
