"""Jobs of the history without Spark: this process does the work, as for few rows on one machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import make_conninfo

from delivery.database.connections import connection_parameters
from delivery.history.archive.archive import Archive
from delivery.history.job import StepJob
from delivery.history.steps.export import export_history
from tests.unit.delivery.history.archived import RecordedProgress
from tests.unit.delivery.history.exporting import AT_ONCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def local_job(url: Path | str) -> Iterator[StepJob]:
    """Yield a job that needs no Spark; for transactional tests."""
    conninfo = make_conninfo(**connection_parameters())
    with psycopg.connect(conninfo, autocommit=True) as database:
        database.execute("SET TIME ZONE 'UTC'")
        yield StepJob(
            run_id=1,
            database=database,
            conninfo=conninfo,
            archive=Archive(str(url)),
            progress=RecordedProgress(),
            is_local=True,
            start=_no_spark,
        )


def export_to(url: Path | str) -> None:
    with local_job(url) as job:
        export_history(job, lag=AT_ONCE)


def _no_spark() -> "SparkSession":
    raise AssertionError("few rows need no Spark")
