"""The next interval to export, and the snapshot in which it is read: no late commit is missed.

The interval ends where the oldest writing transaction still open began; the snapshot is taken after
this look-up. `history/README.md` explains why it shows the whole interval, even if the database's
clock goes back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg

from delivery.database.session_settings import SESSION
from delivery.database.statements import statement

# An advisory lock: shared by snapshots, exclusive for dropping a table, which does not wait for
# snapshots by itself. Keys: see `delivery.pipeline.locks`.
SNAPSHOT_LOCK = 0x494E0008 << 32
# Between reading the clock and being visible as a writer a transaction needs less than a
# millisecond, unless the process is delayed.
LAG = timedelta(seconds=5)
# In a chunk, half as many more if nothing would be left then: some twenty seconds.
ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """The time before which everything is certain.

    `waits_for` is the process of a transaction which has held it back for a minute.
    """

    until: datetime
    waits_for: int | None


@dataclass(frozen=True, slots=True)
class ExportWindow:
    """The interval from `since` to before `until`."""

    since: datetime
    until: datetime

    @property
    def is_empty(self) -> bool:
        return self.until <= self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot of PostgreSQL.

    `name` is for `SET TRANSACTION SNAPSHOT`, `visible` is the pg_snapshot, `connection` reads in
    it.
    """

    name: str
    visible: str
    connection: psycopg.Connection[Any]


def read_horizon(database: psycopg.Connection[Any], *, lag: timedelta = LAG) -> Horizon:
    row = database.execute(statement("archive_horizon"), {"lag": lag}).fetchone()
    assert row is not None
    return Horizon(*row)


def next_window(
    database: psycopg.Connection[Any], *, end: datetime, rows: int = ROWS
) -> ExportWindow:
    row = database.execute(statement("archive_window"), {"end": end, "rows": rows}).fetchone()
    assert row is not None
    return ExportWindow(*row)


def is_certain(database: psycopg.Connection[Any], window: ExportWindow) -> bool:
    """Return whether no more rows can appear in the window, whose chunk has begun."""
    row = database.execute(statement("archive_certain"), {"until": window.until}).fetchone()
    return row == (True,)


@contextmanager
def open_snapshot(conninfo: str) -> Iterator[Snapshot]:
    """Yield a snapshot of everything committed now, for any number of connections in the block."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(SESSION)
        connection.execute("SELECT pg_advisory_lock_shared(%s)", [SNAPSHOT_LOCK])
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = connection.execute(
            "SELECT pg_export_snapshot(), pg_current_snapshot()::text"
        ).fetchone()
        assert row is not None
        yield Snapshot(name=row[0], visible=row[1], connection=connection)
