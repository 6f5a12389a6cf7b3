"""Export: what is settled goes from PostgreSQL into the archive, chunk by chunk, verified before it counts.

Each chunk is one piece of time in one snapshot (see `window`): written aside by Spark, read back, compared with PostgreSQL by count and
checksum, and only then moved into place (see `chunk`). Run again after a kill at any point, it goes on with nothing lost
and nothing twice. One at a time in the whole installation: its caller holds the lock of the export.
"""

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.functions import to_date

from delivery.history import chunk as chunks
from delivery.history import compaction
from delivery.history.chunk import Chunk
from delivery.history.fingerprint import in_postgresql, in_spark, of_row
from delivery.history.job import Job
from delivery.history.schemas import DAY, TABLES, Table
from delivery.history.source import FORMAT, InturnSource, Piece
from delivery.history.window import LAG, ROWS, Snapshot, Window, horizon, next_window, snapshot
from delivery.sql import statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What one worker reads at a time; fewer rows are not worth another.
_ROWS_A_PART = 50_000
_MOST_PARTS = 4


class MismatchError(RuntimeError):
    """What was written is not what PostgreSQL has; nothing of it counts. The message names the table."""


def export(job: Job, *, rows: int = ROWS, lag: timedelta = LAG) -> dict[str, Any]:
    """Archive everything that is certain by now; return `rows` by table, `chunks`, `compacted` files, and `until` when.

    `waits_for` is the process of a transaction of PostgreSQL that keeps newer rows from being certain, if one does.
    """
    chunks.recover(job.database, job.archive)
    now = horizon(job.database, lag=lag)
    exported = Counter[str]({table.name: 0 for table in TABLES})
    count = 0
    while not (window := next_window(job.database, end=now.until, rows=rows)).is_empty:
        found = _export_window(job, window)
        exported.update(found)
        count += bool(found)
        job.progress.advance(exported.total(), None)
    return {
        "rows": dict(exported),
        "chunks": count,
        "compacted": compaction.compact(job),
        "until": now.until.isoformat(),
        "waits_for": now.waits_for,
    }


def _export_window(job: Job, window: Window) -> dict[str, int]:
    """Archive a piece of time, and return how many rows of each table: none at all leave no chunk."""
    job.progress.doing(f"counting what happened until {window.until:%Y-%m-%d %H:%M:%S}")
    with snapshot(job.conninfo) as seen:
        there = {table.name: _Rows(table, window, seen) for table in TABLES}
        counts = {name: rows.fingerprint.rows for name, rows in there.items() if rows.fingerprint.rows}
        if not counts:
            job.database.execute(statement("archive_skip"), {"until": window.until})
            return {}
        chunk = chunks.begin(
            job.database, kind="EXPORT", run_id=job.run_id, since=window.since, until=window.until
        )
        for name in counts:
            _write(job, chunk, there[name])
    written = [one for table in TABLES for one in chunks.written(job.archive, chunk, table)]
    content = chunks.Content(written=written, snapshot=seen.visible, counts=counts)
    chunks.publish(job.database, job.archive, chunk, content)
    return counts


class _Rows:
    """What PostgreSQL has of a table in a window, seen in a snapshot."""

    def __init__(self, table: Table, window: Window, seen: Snapshot) -> None:
        self.table = table
        self._window = window
        self._seen = seen
        self._select = Piece(table=table.name, since=window.since, until=window.until).select
        self.fingerprint = of_row(self._ask(in_postgresql(table, self._select)))

    def read(self, spark: "SparkSession", conninfo: str) -> "DataFrame":
        """Return them as a frame; read by several workers when they are many."""
        spark.dataSource.register(InturnSource)
        options = {
            "conninfo": conninfo,
            "snapshot": self._seen.name,
            "table": self.table.name,
            "since": self._window.since.isoformat(),
            "until": self._window.until.isoformat(),
            "bounds": ",".join(map(str, self._bounds())),
        }
        return spark.read.format(FORMAT).options(**options).load()

    def _bounds(self) -> list[int]:
        """Return ids between which there are about as many rows for each worker."""
        first, last = self.fingerprint.first_id, self.fingerprint.last_id
        assert first is not None
        assert last is not None
        parts = min(_MOST_PARTS, -(-self.fingerprint.rows // _ROWS_A_PART))
        if parts == 1:
            return [first, last + 1]
        text = statement("archive_bounds").format(id=self.table.key[0], select=self._select)
        (inner,) = self._ask(text, shares=[part / parts for part in range(1, parts)])
        return [first, *inner, last + 1]

    def _ask(self, text: str, **parameters: Any) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._seen.connection.execute(
            text.encode(), parameters or None
        ).fetchone()
        assert row is not None
        return row


def _write(job: Job, chunk: Chunk, rows: _Rows) -> None:
    """Write them into the staging folder and read them back; raise MismatchError unless they are what PostgreSQL has."""
    table, there = rows.table, rows.fingerprint
    staged = job.archive.address(f"{chunk.staging}/{table.name}")
    job.progress.doing(f"exporting {there.rows:,} {table.name} until {chunk.until:%Y-%m-%d %H:%M:%S}")
    frame = table.checked(rows.read(job.spark, job.conninfo)).withColumn(DAY, to_date(table.at))
    frame.write.partitionBy(DAY).parquet(staged, mode="overwrite")
    job.progress.doing(f"comparing {there.rows:,} {table.name} with PostgreSQL")
    found = in_spark(table, job.spark.read.schema(table.spark).parquet(staged))
    if found != there:
        raise MismatchError(
            f"Of {table.name}, PostgreSQL has {there.rows:,} rows with checksum {there.checksum}, and what was written has "
            f"{found.rows:,} with {found.checksum}. Nothing of it counts; run the export again."
        )
