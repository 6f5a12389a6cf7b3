"""Which piece of time is exported next, and the snapshot in which it is read: nothing that commits late is missed.

A row carries the time of the very moment it was written, which is after its transaction began. So what has a time
before `until` was written by a transaction that began before `until`; the piece ends where the oldest transaction began
that has written and not ended yet. The snapshot is taken after that was looked up: it shows all of the piece,
and so does every later one.

The database's clock may go back: another server takes over, or somebody sets it. So the times that rows carry are never before what an
export has taken (`delivery_clock`): a chunk is begun in the ledger first, then it `is_certain` that nobody writes with
an earlier time any more, and then the snapshot is taken. While the clock is behind, nothing is exported.

One snapshot for all readers, and for the counting that the files are compared with. It holds back vacuum
for as long as a chunk takes: seconds, which is why chunks are bounded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg

from delivery.database.statements import statement

# An advisory lock: shared by snapshots, taken alone by who drops a table, for that does not wait for snapshots. Keys: see
# `delivery.pipeline.locks`.
SNAPSHOT_LOCK = 0x494E0008 << 32
# Between reading the clock and being known as a writer lies less than a millisecond, unless a process is held up.
LAG = timedelta(seconds=5)
# In one chunk, and half as many if nothing would be left then: some twenty seconds.
ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """Until when everything is certain. `waits_for` is the process of a transaction that has held it back for a minute."""

    until: datetime
    waits_for: int | None


@dataclass(frozen=True, slots=True)
class ExportWindow:
    """From `since` to before `until`."""

    since: datetime
    until: datetime

    @property
    def is_empty(self) -> bool:
        return self.until <= self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Of PostgreSQL: `name` is for `SET TRANSACTION SNAPSHOT`, `visible` what it sees (pg_snapshot), `connection` sees it."""

    name: str
    visible: str
    connection: psycopg.Connection[Any]


def horizon(database: psycopg.Connection[Any], *, lag: timedelta = LAG) -> Horizon:
    row = database.execute(statement("archive_horizon"), {"lag": lag}).fetchone()
    assert row is not None
    return Horizon(*row)


def next_window(database: psycopg.Connection[Any], *, end: datetime, rows: int = ROWS) -> ExportWindow:
    row = database.execute(statement("archive_window"), {"end": end, "rows": rows}).fetchone()
    assert row is not None
    return ExportWindow(*row)


def is_certain(database: psycopg.Connection[Any], window: ExportWindow) -> bool:
    """Return whether nothing more will be of the window, of which a chunk has begun."""
    row = database.execute(statement("archive_certain"), {"until": window.until}).fetchone()
    return row == (True,)


@contextmanager
def snapshot(conninfo: str) -> Iterator[Snapshot]:
    """Yield what is committed now, for as many connections as want to see it, until this ends."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute("SELECT pg_advisory_lock_shared(%s)", [SNAPSHOT_LOCK])
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = connection.execute("SELECT pg_export_snapshot(), pg_current_snapshot()::text").fetchone()
        assert row is not None
        yield Snapshot(name=row[0], visible=row[1], connection=connection)
