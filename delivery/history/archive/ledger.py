"""The ledger of the archive, in PostgreSQL: the exported intervals, and the files that count.

Read in a snapshot, it is consistent with the tables of the same snapshot: the files have everything
settled before `until`, and the tables have everything else.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import psycopg

from delivery.database.statements import statement

# An advisory lock: shared by readers of the archive's files, exclusive for their removal. Keys: see
# `delivery.pipeline.locks`.
FILES_LOCK = 0x494E0007 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A Parquet file of a table.

    `path` is relative to the archive; `first_id` and `last_id` are ids of the file's rows. `sha256`
    is of the bytes and `checksum` of the rows (hexadecimal); both are empty if none were kept.
    """

    id: int
    table: str
    day: date
    path: str
    rows: int
    bytes: int
    first_id: int
    last_id: int
    sha256: str = ""
    checksum: str = ""


def read_files(database: psycopg.Connection[Any], *, before_waiting: Callable[[], None]) -> None:
    """Protect the ledger's files against removal until the connection ends; waits for a removal."""
    row = database.execute("SELECT pg_try_advisory_lock_shared(%s)", [FILES_LOCK]).fetchone()
    if row != (True,):
        before_waiting()
        database.execute("SELECT pg_advisory_lock_shared(%s)", [FILES_LOCK])


@contextmanager
def try_lock_files(database: psycopg.Connection[Any]) -> Iterator[bool]:
    """Yield whether nobody reads the files; if so, nobody can begin to while the block lasts."""
    row = database.execute("SELECT pg_try_advisory_lock(%s)", [FILES_LOCK]).fetchone()
    is_alone = row is not None and bool(row[0])
    try:
        yield is_alone
    finally:
        if is_alone and not database.closed:
            database.execute("SELECT pg_advisory_unlock(%s)", [FILES_LOCK])


def archived_until(database: psycopg.Connection[Any]) -> datetime | None:
    """Return the watermark, before which everything is in the archive; None without exports."""
    row = database.execute("SELECT until FROM delivery_archived WHERE id = 1").fetchone()
    return None if row is None else row[0]


def files(
    database: psycopg.Connection[Any],
    table: str,
    *,
    since: date | None = None,
    until: date | None = None,
) -> list[File]:
    """Return the valid files of a table, of the days from `since` to `until` inclusive."""
    rows = database.execute(
        statement("archive_files"), {"table": table, "since": since, "until": until}
    ).fetchall()
    return [
        File(
            id=id,
            table=table,
            day=day,
            path=path,
            rows=count,
            bytes=size,
            first_id=first,
            last_id=last,
            sha256=sha256,
            checksum=checksum,
        )
        for id, day, path, count, size, first, last, sha256, checksum in rows
    ]


def rows_since(database: psycopg.Connection[Any], time: datetime) -> dict[str, int]:
    """Return the rows by table archived by exports since the watermark was at this time."""
    rows = database.execute(statement("archive_rows_since"), {"time": time}).fetchall()
    return {table: int(count) for table, count in rows}


def paths(archived: Iterable[File]) -> Sequence[str]:
    return [file.path for file in archived]
