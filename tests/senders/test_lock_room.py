"""A sender says when there are more lanes than PostgreSQL's lock table has room for."""

import asyncio

import pytest
from django.db import connection

from delivery.senders.lock_room import enough, warn_of_little_room
from delivery.senders.read import Reader

pytestmark = pytest.mark.django_db(transaction=True)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    async def asking() -> None:
        reader = Reader(name="inturn reader test")
        try:
            await warn_of_little_room(reader)
        finally:
            await reader.close()

    asyncio.run(asking())
    return [record.message for record in caplog.records if "max_locks_per_transaction" in record.message]


def add_lanes(count: int) -> None:
    with connection.cursor() as cursor:
        for kind in ("QUEUE", "CALLBACK"):
            cursor.execute(
                "INSERT INTO delivery_lane (kind, number, state, reason, failures, run_ids, run_attempts)"
                " SELECT %s, n, 'IDLE', '', 0, '{}', '{}' FROM generate_series(100, 100 + %s) AS n",
                [kind, count // 2],
            )


def test_with_few_lanes_there_is_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog) == []


def test_with_more_lanes_than_room_it_says_which_setting_to_raise(caplog: pytest.LogCaptureFixture) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int"
        )
        (room,) = cursor.fetchone() or (0,)
    add_lanes(room)
    (said,) = warnings(caplog)
    assert said.startswith("too few locks")


def test_what_it_says_is_enough() -> None:
    assert enough({"lanes": 7_500, "connections": 100}) == 100
