"""Report: a file for auditors, with a row for each settlement of an interval.

A row has the message and the attempts. A resubmitted delivery has a row for each settlement in the
interval, with the state of the settlement: auditors need the events. `REPORT` describes the
columns.

Spark writes sorted parts of the rows to a hidden folder of the archive. The parts are joined into
the file row by row, under a hidden name, and only the complete file gets the final name. So neither
bodies nor rows have to fit into memory, and a killed run leaves no seemingly complete file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
from pyarrow import parquet

from delivery.database.statements import statement
from delivery.history.archive import ledger
from delivery.history.archive.losses import read_what_is_there
from delivery.history.job import StepJob
from delivery.history.schemas import ATTEMPTS, DELIVERIES, MESSAGES, Table
from delivery.history.spark.frames import masked_url, partitioned_for
from delivery.history.steps.report_file import row_writer
from delivery.history.steps.report_request import (
    ReportError,
    ReportOptions,
    ReportRequest,
    read_report_request,
)
from subscriptions.filters.parse import parse_filter
from subscriptions.filters.to_spark import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The folder of unfinished reports, by run, hidden in the archive from readers.
PARTS = ".reports"
_BATCH_ROWS = 1_000


def write_report(job: StepJob, **options: Unpack[ReportOptions]) -> dict[str, Any]:
    """Write the file; return the file's `path`, `rows`, `bytes`, `columns` and `until`.

    The file is complete up to `until`, which is no later than the watermark, except for the rows of
    unreadable files of the archive: `without` names these.
    """
    wanted = read_report_request(options)
    archived = ledger.archived_until(job.database)
    if archived is None:
        raise ReportError(
            "Nothing is archived yet, and a report reads the archive: run the export first."
        )
    wanted = replace(wanted, until=max(min(wanted.until, archived), wanted.since))
    _forget_killed(job)
    folder = f"{PARTS}/{job.run_id}"
    try:
        lacking = _write_parts(job, wanted, folder)
        target = Path(options["to"], _name(job, wanted))
        rows = _join(job, wanted, folder=folder, target=target)
    finally:
        job.archive.clear(folder)
    return {
        "path": str(target),
        "rows": rows,
        "bytes": target.stat().st_size,
        "columns": wanted.columns.names,
        "until": wanted.until.isoformat(),
        **({"without": sorted(lacking.values())} if lacking else {}),
    }


def requested_settlements(deliveries: "DataFrame", wanted: ReportRequest) -> "DataFrame":
    """Return the requested settlements, by the conditions on the deliveries themselves."""
    from pyspark.sql.functions import col, lit

    rows = deliveries.where(
        (col("settled_at") >= lit(wanted.since)) & (col("settled_at") < lit(wanted.until))
    )
    for name, value in wanted.equal.items():
        rows = rows.where(col(name) == lit(value))
    return rows.where(col("status").isin(*wanted.statuses)) if wanted.statuses else rows


def attempt_figures(attempts: "DataFrame") -> "DataFrame":
    """Return the figures of the attempts of each settlement."""
    from pyspark.sql import functions

    last = ("outcome", "status_code", "error", "duration_ms")
    return attempts.groupBy("delivery_id", "settled_at").agg(
        functions.count("*").cast("int").alias("recorded_attempts"),
        functions.min("started_at").alias("first_attempt_at"),
        functions.max("started_at").alias("last_attempt_at"),
        *(functions.max_by(name, "number").alias(f"last_{name}") for name in last),
    )


def reported(
    deliveries: "DataFrame", *, messages: "DataFrame", attempts: "DataFrame", wanted: ReportRequest
) -> "DataFrame":
    """Return the report's rows, in order; surplus messages and attempts are ignored."""
    from pyspark.sql.functions import coalesce, col, lit

    if wanted.filter:
        condition = to_spark(parse_filter(wanted.filter), header=col("headers"), body=col("body"))
        messages = messages.where(condition)
    bodies = ["headers", "body"] if wanted.with_bodies else []
    texts = messages.select(
        col("id").alias("message_id"),
        "publisher",
        "content_type",
        "destination",
        "edited_from",
        *bodies,
    )
    figures = attempt_figures(attempts).withColumnRenamed("delivery_id", "id")
    joined = deliveries.join(texts, "message_id", "inner" if wanted.filter else "left").join(
        figures, ["id", "settled_at"], "left"
    )
    frame = joined.withColumnRenamed("id", "delivery_id").withColumns(
        {
            "recorded_attempts": coalesce("recorded_attempts", lit(0)),
            # A report is passed on.
            "endpoint": masked_url(col("endpoint")),
        }
    )
    return wanted.table.checked(frame).orderBy("settled_at", "delivery_id")


def _write_parts(job: StepJob, wanted: ReportRequest, folder: str) -> dict[str, str]:
    """Write the rows to a folder of the archive; return why files were left out, by path."""
    if not (files := _files(job, DELIVERIES, *wanted.days)):
        return {}
    job.progress.doing(f"looking through {sum(file.rows for file in files):,} settlements")
    published, lacking = read_what_is_there(
        job, files, lambda there: _published(_settlements(job, there, wanted))
    )
    if published is None:
        return lacking
    files = [file for file in files if file.path not in lacking]
    files += _files(job, ATTEMPTS, *wanted.days) + _files(job, MESSAGES, *published)
    _, more = read_what_is_there(job, files, partial(_write_rows, job, wanted, folder))
    return lacking | more


def _write_rows(
    job: StepJob, wanted: ReportRequest, folder: str, files: Sequence[ledger.File]
) -> None:
    messages, attempts = (
        [file for file in files if file.table == table.name] for table in (MESSAGES, ATTEMPTS)
    )
    with partitioned_for(job.spark, sum(file.rows for file in files if file not in messages)):
        frame = reported(
            _settlements(job, files, wanted),
            messages=job.read_files(MESSAGES, messages),
            attempts=job.read_files(ATTEMPTS, attempts),
            wanted=wanted,
        )
        job.write_files(frame, folder)


def _settlements(job: StepJob, files: Sequence[ledger.File], wanted: ReportRequest) -> "DataFrame":
    settled = [file for file in files if file.table == DELIVERIES.name]
    return requested_settlements(job.read_files(DELIVERIES, settled), wanted)


def _published(deliveries: "DataFrame") -> tuple[date, date] | None:
    """Return the days on which the messages were published; a replay's may be years old."""
    from pyspark.sql import functions

    day = functions.to_date("published_at")
    first, last = deliveries.select(functions.min(day), functions.max(day)).collect()[0]
    return None if first is None else (first, last)


def _files(job: StepJob, table: Table, since: date, until: date) -> list[ledger.File]:
    return ledger.files(job.database, table.name, since=since, until=until)


def _join(job: StepJob, wanted: ReportRequest, *, folder: str, target: Path) -> int:
    """Write all rows of the parts into a file; return their number."""
    rows = 0
    job.progress.doing(f"writing {target.name}")
    with row_writer(target, wanted.columns, form=wanted.format) as file:
        for batch in _batches(job, folder):
            file.write(batch)
            rows += batch.num_rows
            job.progress.advance(rows, None)
    return rows


def _batches(job: StepJob, folder: str) -> Iterator[pa.RecordBatch]:
    for part in job.archive.parquet(folder):
        with job.archive.files.open_input_file(part.path) as opened:
            yield from parquet.ParquetFile(opened).iter_batches(batch_size=_BATCH_ROWS)


def _forget_killed(job: StepJob) -> None:
    """Remove the leftovers of ended runs."""
    rows = job.database.execute(statement("pipeline_running")).fetchall()
    running = {str(id) for (id,) in rows}
    for left in {
        job.archive.relative(file.path).split("/")[1] for file in job.archive.parquet(PARTS)
    }:
        if left not in running:
            job.archive.clear(f"{PARTS}/{left}")


def _name(job: StepJob, wanted: ReportRequest) -> str:
    return f"settled-{wanted.since:%Y%m%d}-{wanted.until:%Y%m%d}-run{job.run_id}.{wanted.format}"
