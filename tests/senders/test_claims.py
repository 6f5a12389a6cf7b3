"""Which lanes a sender takes, and that it takes none twice."""

import asyncio

import pytest
from django.db import connection

from delivery.models import Lane
from delivery.models.lane import LANE_LOCKS
from delivery.senders.desk import Desk
from delivery.senders.lanes import Claims
from delivery.senders.topic_lane import TopicLane
from tests import factories
from tests.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)


def locks(lane_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s",
            [LANE_LOCKS, lane_id],
        )
        return int((cursor.fetchone() or (0,))[0])


@pytest.fixture
def lane() -> Lane:
    found: Lane = factories.subscriber().lane
    return found


def test_a_lane_that_is_claimed_twice_at_once_is_served_once(lane: Lane) -> None:
    async def scenario(claims: Claims, desk: Desk) -> None:
        await asyncio.gather(*(claims.claim([lane.pk, lane.pk]) for _ in range(3)))
        assert list(desk.lanes) == [lane.pk]
        task = desk.lanes[lane.pk].task
        assert task is not None
        claims.close()
        await task
        assert await elsewhere(locks, lane.pk) == 0

    with_claims(scenario)


def test_who_lost_the_database_lets_others_come_back_first(lane: Lane) -> None:
    async def scenario(claims: Claims, desk: Desk) -> None:
        desk.settler.may_lock_at = float("inf")
        await claims.claim([lane.pk])
        assert not desk.lanes
        desk.settler.may_lock_at = 0.0
        await claims.claim([lane.pk])
        assert list(desk.lanes) == [lane.pk]

    with_claims(scenario)


def test_a_lane_that_is_locked_while_claims_close_is_given_back(lane: Lane) -> None:
    async def scenario(claims: Claims, desk: Desk) -> None:
        claiming = asyncio.create_task(claims.claim([lane.pk]))
        await asyncio.sleep(0)
        claims.close()
        await claiming
        assert not desk.lanes
        assert await elsewhere(locks, lane.pk) == 0

    with_claims(scenario)


def test_a_parked_lane_is_taken_again_unless_it_failed(lane: Lane) -> None:
    async def scenario(claims: Claims, desk: Desk) -> None:
        await claims.claim([lane.pk])
        answered = desk.lanes[lane.pk]
        claims.park([answered])
        # It is taken again without being asked for: giving it back looks for news once more.
        async with asyncio.timeout(30):
            while (failed := desk.lanes.get(lane.pk)) in (None, answered):
                await asyncio.sleep(0.005)
        assert isinstance(failed, TopicLane)
        assert failed.task is not None
        failed.failures = 1
        claims.park([failed])
        await failed.task
        await claims.claim([lane.pk])
        assert not desk.lanes

    with_claims(scenario)
