"""A sender without a free slot waits for one: it must not stay idle until Inturn starts again."""

import os
import subprocess
import sys
from urllib.parse import quote

import psycopg
import pytest
from django.db import connection

from config.env import CHECKOUT
from delivery.database.connections import connection_parameters
from delivery.models.lane import MEMBER_LOCKS
from delivery.senders.shards.sharing import MAX_SENDERS
from tests.system.operation.installation import eventually

pytestmark = pytest.mark.django_db(transaction=True)

_TAKE_ALL = """
    SELECT count(pg_advisory_lock((%s::bigint << 32) | slot))
    FROM generate_series(0, %s - 1) AS slot
"""


def test_a_slot_is_found_as_soon_as_a_session_ends() -> None:
    ghost = psycopg.connect(**connection_parameters(), autocommit=True)
    ghost.execute(_TAKE_ALL, [MEMBER_LOCKS, MAX_SENDERS])
    environment = os.environ | {"DATABASE_URL": url(), "DJANGO_SETTINGS_MODULE": "config.settings"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.sender"], cwd=CHECKOUT, env=environment
    ) as sender:
        try:
            eventually(
                lambda: sender.poll() is not None or has_asked(), "it has found all slots taken"
            )
            assert sender.poll() is None
            assert not is_at_work(sender.pid)
            ghost.close()
            eventually(lambda: is_at_work(sender.pid), "it is at work")
        finally:
            ghost.close()
            sender.terminate()
            sender.wait(timeout=30)


def has_asked() -> bool:
    return is_connected("inturn", last="%pg_try_advisory_lock%")


def is_at_work(pid: int) -> bool:
    return is_connected(f"inturn sender {pid} %")


def is_connected(name: str, *, last: str = "%") -> bool:
    """Return whether there is a connection of that name with such a last statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE %s AND query LIKE %s",
            [name, last],
        )
        return cursor.fetchone() is not None


def url() -> str:
    given = connection.settings_dict
    user, password = quote(given["USER"]), quote(given["PASSWORD"])
    return f"postgresql://{user}:{password}@{given['HOST']}:{given['PORT']}/{given['NAME']}"
