"""The export is killed -9 in each window and run again: no row or file is lost or left over.

write staged files ─▶ compare ─▶ record the files (MOVING) ─▶ move them ─▶ publish them (DONE)
                   1                                       2            3
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow.dataset
import pytest
from django.db import connection
from django.utils import timezone

from config.env import CHECKOUT
from delivery.database.connections import connection_parameters
from delivery.models import ArchiveChunk, Archived, ArchiveFile, ChunkState, Message
from tests.support import factories

# Quicker: `TestKilled` of the history's foreign readers, killed in the first of these windows.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

COUNT = 50
LOOK_SECONDS = 0.05
# Sessions of this database: its server has other databases, whose tables may have the same numbers,
# and vacuum's workers.
_WAITING = (
    "FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE datname = current_database() AND usename = current_user AND NOT granted "
    "AND relation = %s::regclass"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for _ in range(COUNT):
        factories.message(published_at=timezone.now() - timedelta(days=1))
    return tmp_path


@contextmanager
def exporting(home: Path) -> Iterator[subprocess.Popen[str]]:
    found = connection.settings_dict
    url = (
        f"postgresql://{found['USER']}:{found['PASSWORD']}"
        f"@{found['HOST']}:{found['PORT']}/{found['NAME']}"
    )
    with subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), "history", "export"],
        env=os.environ | {"DATABASE_URL": url, "INTURN_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def holding(lock: str) -> Iterator[psycopg.Connection[Any]]:
    """Hold a table lock, so that other sessions wait for it."""
    with psycopg.connect(**connection_parameters()) as holder:
        holder.execute(lock)
        yield holder


def is_waiting_for(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) {_WAITING}", [table])
        row = cursor.fetchone()
    return row is not None and bool(row[0])


def kill_where_it_waits(home: Path, *, lock: str, table: str) -> None:
    with holding(lock), exporting(home) as process:
        # However long a JVM takes to start on a busy machine: the test's own time-out is the end.
        while not is_waiting_for(table):
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(LOOK_SECONDS)
        process.send_signal(signal.SIGKILL)
        process.wait()
        # A statement already sent would be executed once the table is released.
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_terminate_backend(pid, 10000) {_WAITING}", [table])


def export(home: Path) -> None:
    with exporting(home) as process:
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said


def foreign_readers(home: Path) -> tuple[Counter[int], Counter[int]]:
    """Return how often each message is in the archive, as read by two other Parquet readers."""
    folder = home / "archive" / "messages"
    by_arrow = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive")
    by_duckdb = duckdb.read_parquet(f"{folder}/**/*.parquet").project("id").fetchall()
    return Counter(by_arrow.to_table(columns=["id"])["id"].to_pylist()), Counter(
        id for (id,) in by_duckdb
    )


def insist_on_all_of_it_once(home: Path) -> None:
    once = Counter(Message.objects.values_list("pk", flat=True))
    assert foreign_readers(home) == (once, once)
    assert {
        str(path.relative_to(home / "archive")) for path in (home / "archive").rglob("*.parquet")
    } == set(ArchiveFile.objects.values_list("path", flat=True))
    assert ArchiveChunk.objects.exclude(state=ChunkState.DONE).count() == 0


def test_before_its_files_are_noted(home: Path) -> None:
    kill_where_it_waits(
        home, lock="LOCK TABLE delivery_archivefile IN EXCLUSIVE MODE", table="delivery_archivefile"
    )
    assert not list((home / "archive").glob("messages/**/*.parquet"))
    assert not Archived.objects.exists()
    export(home)
    insist_on_all_of_it_once(home)


def test_before_its_files_count(home: Path) -> None:
    kill_where_it_waits(
        home, lock="LOCK TABLE delivery_archived IN EXCLUSIVE MODE", table="delivery_archived"
    )
    assert not Archived.objects.exists()
    assert ArchiveChunk.objects.get().state == ChunkState.MOVING
    insist = Counter(Message.objects.values_list("pk", flat=True))
    assert foreign_readers(home) == (insist, insist)
    export(home)
    insist_on_all_of_it_once(home)


def test_between_two_files(home: Path) -> None:
    kill_where_it_waits(
        home, lock="LOCK TABLE delivery_archived IN EXCLUSIVE MODE", table="delivery_archived"
    )
    # As after the move of the first of two files.
    for file in ArchiveFile.objects.order_by("pk")[1:]:
        staged = home / "archive" / file.staged
        staged.parent.mkdir(parents=True, exist_ok=True)
        (home / "archive" / file.path).rename(staged)
    export(home)
    insist_on_all_of_it_once(home)
