"""Export: what is settled goes from PostgreSQL into the archive, chunk by chunk, verified before it counts.

Each chunk is one piece of time in one snapshot (see `window`): written aside by Spark's workers, read back, compared with PostgreSQL by count and
checksum, and only then moved into place (see `chunk`). Run again after a kill at any point, it goes on with nothing lost
and nothing twice. One at a time in the whole installation: its caller holds the lock of the export.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from delivery.history import chunk as chunks
from delivery.history import compaction
from delivery.history.chunk import Written
from delivery.history.extract import Extraction, Numbered, ReadBack, by_table
from delivery.history.fingerprint import Fingerprint
from delivery.history.job import Job
from delivery.history.schemas import ATTEMPTS, DELIVERIES, JOURNAL, MESSAGES, TABLES
from delivery.history.source import ALL_IDS, Piece
from delivery.history.window import LAG, ROWS, Snapshot, Window, horizon, next_window, snapshot
from delivery.history.workers import each
from delivery.sql import statement

# What one worker writes at a time; fewer rows are not worth another, nor more files of a day.
_ROWS_A_PIECE = 50_000
_MOST_PIECES = 4
# What is in a piece of time is found in these, by these columns; attempts belong to their deliveries.
_RELATIONS = (
    ("delivery_message", "published_at", (MESSAGES,)),
    ("delivery_delivery", "settled_at", (DELIVERIES, ATTEMPTS)),
    ("delivery_journalentry", "at", (JOURNAL,)),
)


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
        pieces = _pieces(seen, window)
        if not pieces:
            job.database.execute(statement("archive_skip"), {"until": window.until})
            return {}
        chunk = chunks.begin(
            job.database, kind="EXPORT", run_id=job.run_id, since=window.since, until=window.until
        )
        extraction = Extraction(conninfo=job.conninfo, snapshot=seen.name, archive=job.archive, chunk=chunk)
        written = _extracted(job, extraction, pieces)
        counts = _compared(job, extraction, pieces, written)
    content = chunks.Content(written=written, snapshot=seen.visible, counts=counts)
    chunks.publish(job.database, job.archive, chunk, content)
    return counts


def _pieces(seen: Snapshot, window: Window) -> list[Piece]:
    """Return what workers are to read, each about as many rows; together all ids there are, whatever was counted."""
    found = []
    for relation, at, tables in _RELATIONS:
        text = statement("archive_bounds").format(relation=relation, at=at)
        parameters = {
            "since": window.since,
            "until": window.until,
            "rows": _ROWS_A_PIECE,
            "most": _MOST_PIECES,
        }
        row = seen.connection.execute(text.encode(), parameters).fetchone()
        assert row is not None
        count, inner = row
        found += [
            Piece(table=table.name, since=window.since, until=window.until, first=first, last=last)
            for table in tables
            for first, last in pairwise([ALL_IDS[0], *inner, ALL_IDS[1]])
            if count
        ]
    return found


def _extracted(job: Job, extraction: Extraction, pieces: Sequence[Piece]) -> list[Written]:
    """Let workers write the pieces into the staging folder, and return what they wrote."""
    job.progress.doing(f"exporting what happened until {extraction.chunk.until:%Y-%m-%d %H:%M:%S}")
    numbered = [Numbered(number, piece) for number, piece in enumerate(pieces)]
    return [
        Written(**file | {"day": date.fromisoformat(file["day"])})
        for files in each(job.spark, numbered, extraction.write)
        for file in files
    ]


def _compared(
    job: Job, extraction: Extraction, pieces: Sequence[Piece], written: Sequence[Written]
) -> dict[str, int]:
    """Read back what was written, and return its rows by table; raise MismatchError unless they are what PostgreSQL has."""
    job.progress.doing(f"comparing {sum(file.rows for file in written):,} rows with PostgreSQL")
    if written and not job.archive.is_folder:
        # Arrow has written it. Where Spark lacks what reads such a URL, it must not count.
        job.spark.read.parquet(job.archive.address(written[0].staged))
    there = by_table(each(job.spark, pieces, extraction.count))
    here = by_table(
        each(job.spark, [(file.table, file.staged) for file in written], ReadBack(job.archive).count)
    )
    for name, expected in there.items():
        found = here.get(name, Fingerprint())
        if found != expected:
            columns = ", ".join(expected.different_from(found))
            raise MismatchError(
                f"Of {name}, PostgreSQL has {expected.rows:,} rows, and {found.rows:,} were written; checksums differ of {columns}. "
                "Nothing of it counts; run the export again."
            )
    return {name: found.rows for name, found in here.items()}
