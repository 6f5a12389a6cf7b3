"""The shards and lanes that a sender claims: it begins none twice, and releases them in order."""

import asyncio

import pytest
from django.db import connection

from delivery.models import Lane
from delivery.models.lane import SHARD_LOCKS
from delivery.models.shard import SHARDS, shard_of
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.senders.shards.session import SenderSession
from delivery.senders.shards.sharing import owner_of, shards_of
from tests.support import factories
from tests.system.operation.installation import eventually
from tests.unit.delivery.senders.parcels import parcel
from tests.unit.delivery.senders.running import elsewhere, end_sessions, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60


def locked_shards() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE datname = current_database() AND locktype = 'advisory' AND classid = %s",
            [SHARD_LOCKS],
        )
        return int((cursor.fetchone() or (0,))[0])


@pytest.fixture
def lane() -> Lane:
    found: Lane = factories.subscriber().lane
    return found


def test_a_sender_that_is_alone_has_all_shards() -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        assert set(context.session.claimed.shards) == set(range(SHARDS))
        assert await elsewhere(locked_shards) == SHARDS

    with_claims(scenario)
    # Its backend ends a moment after it.
    eventually(lambda: locked_shards() == 0, "its locks are free")


def test_a_lane_that_is_begun_twice_at_once_is_served_once(lane: Lane) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        await asyncio.gather(*(claims.serve([lane.pk, lane.pk]) for _ in range(3)))
        assert list(context.lanes) == [lane.pk]

    with_claims(scenario)


def test_a_lane_that_is_read_while_claims_close_is_not_begun(lane: Lane) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        serving = asyncio.create_task(claims.serve([lane.pk]))
        await asyncio.sleep(0)
        claims.close()
        await serving
        assert not context.lanes

    with_claims(scenario)


def test_a_sender_that_lost_the_database_lets_others_claim_first(lane: Lane) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        await context.session.release(list(context.session.claimed.shards))
        context.session.claimed.may_claim_at = float("inf")
        await claims.update_members()
        assert not list(context.session.claimed.shards)
        context.session.claimed.may_claim_at = 0.0
        await claims.update_members()
        assert set(context.session.claimed.shards) == set(range(SHARDS))

    with_claims(scenario)


@pytest.fixture
def others() -> Lane:
    """Return a lane of a shard that belongs to the second of two senders."""
    while owner_of(shard_of((lane := factories.subscriber().lane).pk), {0, 1}) != 1:
        continue
    found: Lane = lane
    return found


async def share(claims: Claims) -> SenderSession:
    """Start another sender, with which the work is shared."""
    other = SenderSession()
    assert await other.connect()
    await other.members()
    claims.sharing.sharing = 2
    return other


def test_a_shard_that_another_sender_is_to_have_is_released_when_its_lanes_have_ended(
    others: Lane,
) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([others.pk])
        task = context.lanes[others.pk].task
        assert task is not None
        other = await share(claims)
        await claims.update_members()
        async with asyncio.timeout(SECONDS):
            await task
        await claims.release_left()
        await claims.serve([others.pk])
        assert not context.lanes
        assert set(context.session.claimed.shards) == shards_of(0, {0, 1})
        assert await other.claim(list(range(SHARDS))) == shards_of(1, {0, 1})
        await other.close()

    with_claims(scenario)


def test_no_lane_of_a_shard_begins_while_that_waits_to_be_released(others: Lane) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([others.pk])
        task = context.lanes[others.pk].task
        assert task is not None
        other = await share(claims)
        await claims.update_members()
        async with asyncio.timeout(SECONDS):
            await task
        # As by a slow commit.
        async with context.session.turn:
            releasing = asyncio.create_task(claims.release_left())
            await asyncio.sleep(0)
            await claims.serve([others.pk])
            assert not context.lanes
        await releasing
        assert shard_of(others.pk) not in context.session.claimed.shards
        await other.close()

    with_claims(scenario)


def test_a_shard_is_kept_while_one_of_its_lanes_waits_for_an_answer(others: Lane) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([others.pk])
        hanging = context.lanes[others.pk]
        hanging.in_flight.add(parcel(1), 1)
        hanging.in_flight.begin(parcel(1), None, now=0.0)
        other = await share(claims)
        await claims.update_members()
        assert not hanging.is_yielding
        assert set(context.session.claimed.shards) == shards_of(0, {0, 1}) | {shard_of(others.pk)}
        await other.close()

    with_claims(scenario)


def test_lanes_of_a_shard_that_was_lost_end(lane: Lane) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        task = context.lanes[lane.pk].task
        assert task is not None
        other = SenderSession()
        assert await other.connect()
        await elsewhere(end_sessions)
        async with asyncio.timeout(SECONDS):
            while not await other.claim([shard_of(lane.pk)]):
                await elsewhere(end_sessions)
        await claims.update_members()
        async with asyncio.timeout(SECONDS):
            await task
        assert not context.lanes
        await other.close()

    with_claims(scenario)
