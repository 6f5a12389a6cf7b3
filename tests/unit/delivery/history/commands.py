"""`manage.py history …` as a process, on the tests' database and an archive of the test's own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.conninfo import make_conninfo

from config.env import CHECKOUT
from delivery.database.connections import connection_parameters
from tests.support import brief_spark
from tests.system.operation.installation import eventually

# A busy machine takes minutes for an idle one's seconds.
SECONDS = 600


def history(*arguments: str, archive: Path, **environment: str) -> str:
    """Run it to its end, and return its output; it has to succeed."""
    done = ended_history(*arguments, archive=archive, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ended_history(
    *arguments: str, archive: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        **_what(arguments, archive, environment),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done


def started_history(*arguments: str, archive: Path, **environment: str) -> "subprocess.Popen[str]":
    """Start it."""
    return subprocess.Popen(
        **_what(arguments, archive, environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_where_it_writes(table: str, *arguments: str, archive: Path) -> None:
    """Run it until it first writes to that table, and kill it at that moment, with its JVM."""
    with _readable_only(table) as waiting:
        process = subprocess.Popen(
            **_what(arguments, archive, {}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            claim = f"it writes to {table}"
            eventually(lambda: waiting() or process.poll() is not None, claim, seconds=SECONDS)
            assert process.returncode is None, claim
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # Its server process would wait for the lock, and then continue without it.
        for pid in waiting():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def _what(arguments: tuple[str, ...], archive: Path, environment: dict[str, str]) -> dict[str, Any]:
    return {
        "args": [sys.executable, str(CHECKOUT / "manage.py"), "history", *arguments],
        "env": environment_of(archive) | environment,
        # A folder without the product's modules.
        "cwd": archive.parent,
    }


def environment_of(archive: Path) -> dict[str, str]:
    """Return the environment of a process on the tests' database."""
    brief_spark.without_class_cache(settings.ENVIRONMENT.home)
    url = urlsplit(settings.ENVIRONMENT.database_url)._replace(
        path=f"/{connection.settings_dict['NAME']}"
    )
    return (
        os.environ
        | brief_spark.ENVIRONMENT
        | {"DATABASE_URL": url.geturl(), "HISTORY_URL": str(archive)}
    )


@contextmanager
def _readable_only(table: str) -> Iterator[Callable[[], list[int]]]:
    """Block all writes to the table; yield a function that returns the waiting server processes."""
    with psycopg.connect(make_conninfo(**connection_parameters())) as holder:
        holder.execute(f"LOCK TABLE {table} IN SHARE MODE")

        def waiting() -> list[int]:
            # Not on the holder's connection: in its transaction, pg_stat_activity stays as it was
            # first read.
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pid FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
                    [holder.info.backend_pid],
                )
                return [pid for (pid,) in cursor.fetchall()]

        yield waiting
        holder.rollback()
