"""Rollup: measures the hours of the archive's new chunks again and replaces them in PostgreSQL.

A chunk covers the time since the end of the previous chunk, so it affects the hours of this time;
if a chunk ends within an hour, the next chunk affects the hour again. A lane stopped at the end of
a chunk is counted up to there, and continues in the next chunk.

A run reads its input in a snapshot: the chunks and the valid files. A single transaction deletes
the old hours, writes the new hours and marks the chunks. If the run is killed before the commit,
the old hours are still there and the next run repeats the work. One at a time: a request for a
second run is refused (`pipeline_run_sole`), because it could replace newer figures by older
figures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from itertools import chain, islice
from operator import or_
from typing import TYPE_CHECKING, Any

import psycopg

from delivery.database.statements import statement
from delivery.history.archive import ledger
from delivery.history.archive.ledger import File
from delivery.history.archive.losses import read_what_is_there
from delivery.history.job import StepJob
from delivery.history.schemas import ATTEMPTS, CALLED, DELIVERIES, JOURNAL
from delivery.history.spark.frames import frame_of_rows, partitioned_for
from delivery.history.transforms.measures import COLUMNS, hourly_measures, with_stops
from delivery.history.transforms.stops import lane_stops, stopped_seconds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The number of rows between two progress reports.
BATCH = 1_000
_HOUR = timedelta(hours=1)
# PostgreSQL's CSV, with all spaces kept; it distinguishes null from an empty text.
_CSV = {
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "timestampFormat": "yyyy-MM-dd HH:mm:ssXXX",
}


@dataclass(frozen=True, slots=True)
class HourSpan:
    """Whole hours, from `since` to before `until`."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class RolledChunk:
    """A chunk to roll up, and the interval."""

    id: int
    since: datetime
    until: datetime

    def touches(self, days: set[date]) -> bool:
        return any(self.since.date() <= day <= self.until.date() for day in days)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupWork:
    """The work of a run, and the input files.

    `chunks` are marked as rolled up at the end. Chunks of a day with a missing file are not: their
    hours are measured again by each run, until the file is back.
    """

    chunks: Sequence[RolledChunk]
    spans: Sequence[HourSpan]
    until: datetime
    deliveries: Sequence[File]
    attempts: Sequence[File]
    journal: Sequence[File]
    names: Sequence[tuple[Any, ...]]

    @property
    def files(self) -> list[File]:
        return [*self.deliveries, *self.attempts, *self.journal]

    def limited_to(self, files: Sequence[File]) -> "RollupWork":
        """Return the work with these files alone."""
        there = {file.id for file in files}
        days = {file.day for file in (*self.deliveries, *self.attempts) if file.id not in there}
        return replace(
            self,
            chunks=[chunk for chunk in self.chunks if not chunk.touches(days)],
            deliveries=[file for file in self.deliveries if file.id in there],
            attempts=[file for file in self.attempts if file.id in there],
            journal=[file for file in self.journal if file.id in there],
        )


def measure_hours(job: StepJob, *, everything: bool = False) -> dict[str, Any]:
    """Measure the hours of new chunks, or of all; return how many `chunks` and `rows`.

    A row is an hour of a key. Also returns `since` and `until`.
    """
    work = _work(job.database, everything=everything)
    if work is None:
        return {"chunks": 0, "rows": 0, "since": None, "until": None}
    since, until = work.spans[0].since, work.spans[-1].until
    job.progress.doing(f"measuring {since:%Y-%m-%d, %H:%M} to {until:%Y-%m-%d, %H:%M}")
    written, lacking = read_what_is_there(
        job, work.files, lambda there: _measure(job, work.limited_to(there), everything=everything)
    )
    return {
        "chunks": len(work.chunks),
        "rows": written,
        "since": since.isoformat(),
        "until": work.until.isoformat(),
        **({"without": sorted(lacking.values())} if lacking else {}),
    }


def _measure(job: StepJob, work: RollupWork, *, everything: bool) -> int:
    with partitioned_for(job.spark, sum(file.rows for file in (*work.deliveries, *work.attempts))):
        return _replace(job, work, _computed(hours(job, work)), everything=everything)


def spans(pieces: Sequence[tuple[datetime, datetime]]) -> list[HourSpan]:
    """Return the whole hours touched by these intervals, in order; adjacent hours are merged."""
    merged: list[HourSpan] = []
    for since, until in sorted(pieces):
        if until <= since:
            continue
        first = _hour(since)
        end = _hour(until - timedelta(microseconds=1)) + _HOUR
        if merged and first <= merged[-1].until:
            merged[-1] = HourSpan(merged[-1].since, max(end, merged[-1].until))
        else:
            merged.append(HourSpan(first, end))
    return merged


def hours(job: StepJob, work: RollupWork) -> "DataFrame":
    """Return the rows for the hours of the work."""
    deliveries = _within(job.read_files(DELIVERIES, work.deliveries), "settled_at", work.spans)
    attempts = _within(job.read_files(ATTEMPTS, work.attempts), "settled_at", work.spans)
    journal = job.read_files(JOURNAL, work.journal)
    stopped = _within(stopped_seconds(lane_stops(journal, until=work.until)), "hour", work.spans)
    names = frame_of_rows(job.spark, CALLED, work.names)
    return with_stops(hourly_measures(deliveries, attempts), stopped, names)


def _work(database: psycopg.Connection[Any], *, everything: bool) -> RollupWork | None:
    """Return the work to do, read in a snapshot; None if there is none."""
    with database.transaction():
        database.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        chunks = database.execute(statement("rollup_chunks"), {"everything": everything}).fetchall()
        touched = spans([(since, until) for _, since, until in chunks])
        until = ledger.archived_until(database)
        if not touched or until is None:
            return None
        return RollupWork(
            chunks=[RolledChunk(*chunk) for chunk in chunks],
            spans=touched,
            until=until,
            deliveries=_files(database, "deliveries", touched),
            attempts=_files(database, "attempts", touched),
            # The whole journal: a lane stopped now may have been stopped long ago.
            journal=ledger.files(database, "journal"),
            names=database.execute(statement("subscription_names")).fetchall(),
        )


def _files(database: psycopg.Connection[Any], table: str, spans: Sequence[HourSpan]) -> list[File]:
    files = {
        file.id: file
        for span in spans
        for file in ledger.files(
            database,
            table,
            since=span.since.date(),
            until=(span.until - timedelta(microseconds=1)).date(),
        )
    }
    return list(files.values())


def _within(frame: "DataFrame", column: str, spans: Sequence[HourSpan]) -> "DataFrame":
    from pyspark.sql import functions as sql

    at = sql.col(column)
    conditions: list[Column] = [(at >= span.since) & (at < span.until) for span in spans]
    return frame.filter(reduce(or_, conditions))


def _computed(frame: "DataFrame") -> Iterator[str]:
    """Return the rows as lines for COPY; the first is computed before the transaction begins."""
    from pyspark.sql import functions as sql

    line = sql.to_csv(sql.struct(*COLUMNS), _CSV)
    rows = (str(row[0]) for row in frame.select(line).toLocalIterator(prefetchPartitions=True))
    return chain(list(islice(rows, 1)), rows)


def _replace(job: StepJob, work: RollupWork, rows: Iterator[str], *, everything: bool) -> int:
    """Replace the rows of the same hours; return the number of rows."""
    job.progress.doing("writing the hours")
    written = 0
    forgotten = {
        "since": [span.since for span in work.spans],
        "until": [span.until for span in work.spans],
        "everything": everything,
    }
    with job.database.transaction(), job.database.cursor() as cursor:
        cursor.execute(statement("rollup_forget"), forgotten)
        names = ", ".join(COLUMNS)
        with cursor.copy(f"COPY delivery_historyhour ({names}) FROM STDIN (FORMAT csv)") as copy:
            while batch := list(islice(rows, BATCH)):
                copy.write("\n".join([*batch, ""]))
                written += len(batch)
                job.progress.advance(written, None)
        cursor.execute(statement("rollup_done"), {"chunk": [chunk.id for chunk in work.chunks]})
    job.progress.advance(written, written)
    return written


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
