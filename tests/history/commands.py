"""`manage.py history …` as a process of its own, on the tests' database and an archive of the test's own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.conninfo import make_conninfo

from config.env import CHECKOUT
from delivery.database import connection_parameters
from tests.operation.installation import eventually

SECONDS = 300


def history(*arguments: str, archive: Path, **environment: str) -> str:
    """Run it to its end, and return what it says; it has to succeed."""
    done = subprocess.run(
        **_what(arguments, archive, environment), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kill_where_it_writes(table: str, *arguments: str, archive: Path) -> None:
    """Run it until it first writes to that table, and kill it at that very moment."""
    with _readable_only(table) as holder:
        with subprocess.Popen(
            **_what(arguments, archive, {}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            eventually(lambda: _waiting_for(holder) or process.poll() is not None, f"it writes to {table}")
            process.kill()
        # Its server process would wait for the lock, and then go on without it.
        for pid in _waiting_for(holder):
            holder.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def _what(arguments: tuple[str, ...], archive: Path, environment: dict[str, str]) -> dict[str, object]:
    url = urlsplit(settings.ENVIRONMENT.database_url)._replace(path=f"/{connection.settings_dict['NAME']}")
    return {
        "args": [sys.executable, str(CHECKOUT / "manage.py"), "history", *arguments],
        "env": os.environ | {"DATABASE_URL": url.geturl(), "HISTORY_URL": str(archive)} | environment,
        # Where none of our modules are.
        "cwd": archive.parent,
    }


@contextmanager
def _readable_only(table: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(make_conninfo(**connection_parameters())) as holder:
        holder.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield holder
        holder.rollback()


def _waiting_for(holder: psycopg.Connection) -> list[int]:
    rows = holder.execute(
        "SELECT pid FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [holder.info.backend_pid]
    )
    return [pid for (pid,) in rows]
