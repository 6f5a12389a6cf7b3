"""An idle lane's run: read and recorded by one statement, on the connection that holds the lane's shard."""

import psycopg
import pytest
from django.db import connection

from delivery.models import Delivery, Lane
from delivery.senders.holding import LaneLostError
from delivery.senders.runs import RunRequest
from delivery.senders.settle import Settler
from tests import factories
from tests.senders.running import elsewhere, end_sessions, serve_lanes, with_settler
from tests.senders.test_settle_locked import lane_of, locked

pytestmark = pytest.mark.django_db(transaction=True)


def request(lane_id: int) -> RunRequest:
    return RunRequest(lane_id=lane_id, rows=2, skipped_rows=1, max_bytes=100_000)


def recorded(row: Delivery) -> tuple[list[int], list[int]]:
    lane = Lane.objects.get(pk=lane_of(row))
    return lane.run_ids, lane.run_attempts


def test_what_is_read_is_the_run() -> None:
    rows = [factories.delivery() for _ in range(2)]
    second = factories.delivery(subscription=rows[0].subscription, attempts=3)
    factories.delivery(subscription=rows[0].subscription)

    async def scenario(settler: Settler) -> None:
        await serve_lanes(settler, [lane_of(row) for row in rows])
        found = await settler.begin_runs([request(lane_of(row)) for row in rows])
        assert [row["id"] for row in found] == [rows[0].pk, second.pk, rows[1].pk]
        assert bytes(found[0]["body"]) == bytes(rows[0].message.body)

    with_settler(scenario)
    assert recorded(rows[0]) == ([rows[0].pk, second.pk], [0, 3])
    assert recorded(rows[1]) == ([rows[1].pk], [0])


def test_a_lane_in_which_nothing_waits_is_not_written() -> None:
    row = factories.delivery()
    Lane.objects.filter(pk=lane_of(row)).update(run_ids=[7], run_attempts=[0])
    Delivery.objects.filter(pk=row.pk).delete()
    before = version_of(row)

    async def scenario(settler: Settler) -> None:
        await serve_lanes(settler, [lane_of(row)])
        assert await settler.begin_runs([request(lane_of(row))]) == []

    with_settler(scenario)
    assert version_of(row) == before


def version_of(row: Delivery) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT xmin::text::bigint FROM delivery_lane WHERE id = %s", [row.lane_id])
        (found,) = cursor.fetchone() or (0,)
        return int(found)


def test_a_lane_that_is_lost_begins_nothing() -> None:
    ours, lost = (factories.delivery() for _ in range(2))

    async def scenario(settler: Settler) -> None:
        await serve_lanes(settler, [lane_of(ours), lane_of(lost)])
        settler.holding.end(lane_of(lost))
        with pytest.raises(LaneLostError):
            await settler.begin_runs([request(lane_of(ours)), request(lane_of(lost))])

    with_settler(scenario)
    assert recorded(ours) == recorded(lost) == ([], [])


def test_a_locked_lane_or_an_ended_session_begins_nothing_and_commits_as_before() -> None:
    row = factories.delivery()

    async def scenario(settler: Settler) -> None:
        await serve_lanes(settler, [lane_of(row)])
        with locked("delivery_lane", lane_of(row)), pytest.raises(psycopg.errors.LockNotAvailable):
            await settler.begin_runs([request(lane_of(row))])
        await elsewhere(end_sessions)
        with pytest.raises(psycopg.OperationalError):
            await settler.begin_runs([request(lane_of(row))])
        # It has connected again, and has its lane.
        assert [one["id"] for one in await settler.begin_runs([request(lane_of(row))])] == [row.pk]

    with_settler(scenario)
    assert recorded(row) == ([row.pk], [0])
