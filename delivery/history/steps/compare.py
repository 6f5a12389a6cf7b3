"""Compare: another broker's log against the archived deliveries, by a key of the messages.

For running two brokers side by side before a move. The log is a CSV file with a header row, read by
Spark. A row's key is compared with the text at a path of each archived message. The archive is read
a week beyond the interval at both ends, so a delivery near a bound finds the counterpart.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from delivery.history.archive import ledger
from delivery.history.archive.losses import require_files
from delivery.history.job import StepJob
from delivery.history.schemas import ATTEMPTS, DELIVERIES, MESSAGES, Table, arrow_rows
from delivery.history.spark.frames import kept_frame, partitioned_for
from delivery.history.steps.compare_log import read_their_log, refuse_unreadable
from delivery.history.steps.compare_request import (
    ComparisonError,
    ComparisonOptions,
    ComparisonRequest,
    read_comparison_request,
)
from delivery.history.steps.report_file import row_writer
from delivery.history.transforms.comparison import (
    COMPARISON,
    DIFFERENCES,
    ONLY_HERE,
    SAME,
    comparison_rows,
    our_rows,
    rows_within,
)
from subscriptions.filters.to_spark import text_to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Retries and mailboxes last for days.
_BEYOND = timedelta(days=7)
_EXAMPLES = 5
_BATCH_ROWS = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compare_logs(job: StepJob, **options: Unpack[ComparisonOptions]) -> dict[str, Any]:
    """Compare, and return the counts by result, examples, and the `path` of the file with all rows.

    Only deliveries up to `until`, no later than the watermark, are compared.
    """
    wanted = read_comparison_request(options)
    archived = ledger.archived_until(job.database)
    if archived is None:
        raise ComparisonError(
            "Nothing is archived yet, and a comparison reads the archive: "
            "run `history export` first."
        )
    until = min(wanted.until or archived, archived)
    with ExitStack() as ending:
        compared = (*_files(job, DELIVERIES, wanted), *_files(job, ATTEMPTS, wanted))
        ending.enter_context(partitioned_for(job.spark, sum(file.rows for file in compared)))
        job.progress.doing(f"reading {wanted.theirs}")
        theirs = ending.enter_context(kept_frame(read_their_log(job.spark, wanted)))
        refuse_unreadable(theirs, wanted)
        job.progress.doing("reading the keys of archived messages")
        keyed = ending.enter_context(kept_frame(_keyed(job, wanted)))
        job.progress.doing("comparing")
        rows = ending.enter_context(
            kept_frame(_compared(job, wanted, theirs=theirs, keyed=keyed, until=until))
        )
        counts = dict(map(tuple, rows.groupBy("result").count().collect()))
        total = sum(counts.values())
        job.progress.advance(total, total)
        return {
            "until": until.isoformat(),
            **{result.lower(): counts.get(result, 0) for result in (SAME, *DIFFERENCES)},
            "log_rows_without_key": theirs.filter("key IS NULL").count(),
            "messages_without_key": keyed.filter("key IS NULL").count(),
            "examples": [_example(row) for result in DIFFERENCES for row in _first(rows, result)],
            **({"path": str(_write(job, wanted, rows))} if wanted.to else {}),
        }


def _keyed(job: StepJob, wanted: ComparisonRequest) -> "DataFrame":
    """Return `message_id` and `key` of the archived messages; without a value the key is null.

    Only of those for the compared subscriptions: a message of another event type with the same key
    would be taken for a message outside the filter.
    """
    from pyspark.sql.functions import col

    messages = _archived(job, MESSAGES, wanted)
    if wanted.event_types is not None:
        messages = messages.filter(col("event_type").isin(list(wanted.event_types)))
    key = text_to_spark(wanted.key, header=col("headers"), body=col("body"))
    return messages.select(col("id").alias("message_id"), key.alias("key"))


def _compared(
    job: StepJob,
    wanted: ComparisonRequest,
    *,
    theirs: "DataFrame",
    keyed: "DataFrame",
    until: datetime,
) -> "DataFrame":
    from pyspark.sql.functions import col, lit

    deliveries = _archived(job, DELIVERIES, wanted)
    if wanted.subscription_id is not None:
        deliveries = deliveries.filter(col("subscription_id") == wanted.subscription_id)
    with_key = keyed.filter("key IS NOT NULL")
    here = our_rows(deliveries, _archived(job, ATTEMPTS, wanted), with_key)
    if wanted.subscription:
        here = here.withColumn("subscription", lit(wanted.subscription))
    elif theirs.filter("subscription <> ''").isEmpty():
        here = here.withColumn("subscription", lit(""))
    rows = comparison_rows(theirs.filter("key IS NOT NULL"), here, with_key)
    return rows_within(rows, since=wanted.since, until=until)


def _archived(job: StepJob, table: Table, wanted: ComparisonRequest) -> "DataFrame":
    files = _files(job, table, wanted)
    require_files(job.archive, files)
    return job.read_files(table, files)


def _files(job: StepJob, table: Table, wanted: ComparisonRequest) -> list[ledger.File]:
    # A message may have been published long before the delivery was settled.
    beyond = 2 * _BEYOND if table is MESSAGES else _BEYOND
    return ledger.files(
        job.database,
        table.name,
        since=_day(wanted.since, -beyond),
        until=_day(wanted.until, _BEYOND),
    )


def _day(moment: datetime | None, beyond: timedelta) -> date | None:
    return None if moment is None else (moment + beyond).date()


def _first(rows: "DataFrame", result: str) -> list[tuple[Any, ...]]:
    from pyspark.sql.functions import coalesce

    found = rows.filter(rows["result"] == result)
    ordered = found.orderBy(coalesce("at_there", "at_here"), "subscription", "key")
    return [tuple(row) for row in _plain(ordered.limit(_EXAMPLES)).collect()]


def _plain(rows: "DataFrame") -> "DataFrame":
    """Return the rows with times as microseconds: PySpark would give them in the process's zone."""
    from pyspark.sql import functions as sql

    return rows.select(
        *(
            sql.unix_micros(column.name).alias(column.name)
            if column.type == "timestamp"
            else column.name
            for column in COMPARISON.columns
        )
    )


def _example(values: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row as a person reads it."""
    row = dict(zip(COMPARISON.names, values, strict=True))
    here = _side(row["status_here"], row["at_here"])
    if row["status_here"] is None:
        message = row["message_id"]
        here = (
            f"msg_{message} has no settled delivery"
            if message
            else "no archived message has this key"
        )
    found = {
        "result": row["result"],
        "key": row["key"],
        "subscription": row["subscription"],
        "there": "nothing"
        if row["result"] == ONLY_HERE
        else _side(row["status_there"], row["at_there"]),
        "here": here,
        "overtook": row["overtook"],
    }
    return {name: value for name, value in found.items() if value}


def _side(status: str | None, micros: int | None) -> str:
    at = micros and f"{_EPOCH + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"
    return " ".join(text for text in (status, at) if text) or "a row without status and time"


def _write(job: StepJob, wanted: ComparisonRequest, rows: "DataFrame") -> Path:
    """Write all rows into a file, in order; it gets the final name once it is complete."""
    target = Path(wanted.to, f"compared-run{job.run_id}.{wanted.format}")
    job.progress.doing(f"writing {target.name}")
    ordered = _plain(rows.orderBy("subscription", "at_there", "at_here", "key"))
    found = map(tuple, ordered.toLocalIterator(prefetchPartitions=True))
    with row_writer(target, COMPARISON, form=wanted.format) as file:
        for batch in _batches(found):
            file.write(arrow_rows(COMPARISON.columns, batch))
    return target


def _batches(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while batch := list(islice(rows, _BATCH_ROWS)):
        yield batch
