"""`prepare`: several machines may start at once on one empty database."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from config.env import CHECKOUT
from config.management.commands.prepare import PREPARE_LOCK
from tests.system.operation.installation import DEADLINE_SECONDS

MACHINES = 3
# Of a commit before the migrations were squashed. Today's have all these names but the last.
BEFORE_THE_SQUASH = {
    "contenttypes": ("0001_initial",),
    "auth": ("0001_initial",),
    "subscriptions": ("0001_initial", "0002_built_in", "0003_changes"),
    "delivery": (
        "0001_initial",
        "0002_messages_and_deliveries",
        "0003_settling",
        "0004_lanes_and_traffic",
        "0005_roles",
    ),
}


def prepare(home: Path, url: str) -> subprocess.Popen[str]:
    environment = os.environ | {
        "INTURN_HOME": str(home),
        "DATABASE_URL": url,
        "INTURN_SECRET_KEY": "of-all-machines" * 4,
        "INTURN_ENCRYPTION_KEYS": "of-all-machines" * 4,
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), "prepare"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_machines_that_start_at_once_on_an_empty_database_all_prepare_it(
    empty_database: str, tmp_path: Path
) -> None:
    started = [prepare(tmp_path / str(number), empty_database) for number in range(MACHINES)]
    reported = [machine.communicate(timeout=2 * DEADLINE_SECONDS)[0] for machine in started]
    assert [machine.returncode for machine in started] == [0] * MACHINES, reported
    # One of them created the administrator.
    assert len([said for said in reported if "administrator admin" in said]) == 1


def test_a_second_prepare_waits_and_prints_so(empty_database: str, tmp_path: Path) -> None:
    with psycopg.connect(empty_database, autocommit=True) as first:
        first.execute("SELECT pg_advisory_lock(%s)", [PREPARE_LOCK])
        second = prepare(tmp_path, empty_database)
        assert second.stdout is not None
        assert second.stdout.readline() == "another machine prepares the database: waiting for it\n"
        tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert first.execute(tables).fetchone() == (0,)
    assert "administrator admin" in second.communicate(timeout=DEADLINE_SECONDS)[0]
    assert second.returncode == 0


def test_a_database_of_another_version_is_refused_unchanged(
    empty_database: str, tmp_path: Path
) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE django_migrations (id bigint GENERATED ALWAYS AS IDENTITY, app text, "
            "name text, applied timestamptz)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())",
                [(app, name) for app, names in BEFORE_THE_SQUASH.items() for name in names],
            )
        reported = prepare(tmp_path, empty_database).communicate(timeout=DEADLINE_SECONDS)[0]
        assert (
            "this database is of another version of Inturn, "
            "with the migration delivery.0005_roles, and cannot be migrated" in reported
        )
        assert "start with an empty one" in reported
        assert "manage.py configuration export" in reported
        tables = (
            "SELECT array_agg(relname::text) FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = 'public'::regnamespace"
        )
        assert connection.execute(tables).fetchone() == (["django_migrations"],)
