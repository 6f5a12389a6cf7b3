"""The server ends a frozen sender's session: its locks are free, and it commits nothing."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection

from delivery.models import Shard
from delivery.models.lane import SHARD_LOCKS
from delivery.senders.shards.connection import SenderConnection, Statement
from tests.system.operation.installation import eventually
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

SHARD = 7
SECONDS = 60
_LOCKED = (
    "SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database "
    "WHERE datname = current_database() AND locktype = 'advisory' AND classid = %s AND objid = %s"
)
_RAISE_EPOCH: Statement = (
    "UPDATE delivery_shard SET epoch = epoch + 1 WHERE id = %(shard)s",
    {"shard": SHARD},
)


def is_locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_LOCKED, [SHARD_LOCKS, SHARD])
        return cursor.fetchone() is not None


async def look_until_unlocked() -> None:
    """Look for frozen senders, as another sender does."""
    other = SenderConnection()
    assert await other.take_slot()
    while await elsewhere(is_locked):
        await other.members(busy_percent=0, sharing=1)
        await asyncio.sleep(0.1)
    await other.close()


def wait_until_unlocked(*, is_alone: bool) -> None:
    try:
        assert is_locked()
        if is_alone:
            eventually(lambda: not is_locked(), "the shard's lock is free")
        else:
            asyncio.run(asyncio.wait_for(look_until_unlocked(), SECONDS))
    finally:
        connection.close()


def freeze(*, is_alone: bool = False) -> None:
    """Stop this thread, and with it the event loop, until the lock is free."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(wait_until_unlocked, is_alone=is_alone).result()


class FrozenBetween(list[Statement]):
    """Statements whose sender is frozen when the first is executed and the second not yet sent."""

    def __iter__(self) -> Iterator[Statement]:
        for place, statement in enumerate(super().__iter__()):
            if place:
                freeze()
            yield statement


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param([], marks=pytest.mark.slow),
        FrozenBetween([_RAISE_EPOCH, _RAISE_EPOCH]),
    ],
)
def test_a_frozen_sender_loses_its_locks_and_its_uncommitted_work(
    statements: list[Statement],
) -> None:
    epoch = Shard.objects.get(pk=SHARD).epoch

    async def scenario() -> None:
        session = SenderConnection()
        assert await session.take_slot()
        await session.members(busy_percent=0, sharing=1)
        assert await session.lock([SHARD]) == [SHARD]
        if not statements:
            freeze(is_alone=True)
        with pytest.raises(psycopg.OperationalError):
            await session.execute(statements or [_RAISE_EPOCH])
        assert not session.is_leased
        await session.close()

    asyncio.run(scenario())
    assert Shard.objects.get(pk=SHARD).epoch == epoch
