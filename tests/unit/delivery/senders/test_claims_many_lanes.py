"""A sender with very many lanes: PostgreSQL's default lock table has room for their locks."""

import pytest
from django.db import connection

from delivery.models import Lane
from delivery.models.lane import MEMBER_LOCKS
from delivery.models.shard import SHARDS
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from subscriptions.models import Subscriber
from tests.support.quick import STRIDE
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

LANES = 10_000 if STRIDE == 1 else 2_000
DEFAULT = "64"


@pytest.fixture
def lanes() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_locks_per_transaction")
        assert cursor.fetchone() == (DEFAULT,)
    made = Subscriber.objects.bulk_create(
        Subscriber(name=f"subscriber-{number}") for number in range(LANES)
    )
    return [
        lane.pk
        for lane in Lane.objects.bulk_create(
            Lane(kind="TOPIC", subscriber=subscriber) for subscriber in made
        )
    ]


def locks_of_lanes() -> int:
    """Return the advisory locks of this database's senders, without those of their slots."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE locktype = 'advisory' AND datname = current_database() "
            "AND application_name LIKE 'inturn sender %%' AND classid <> %s",
            [MEMBER_LOCKS],
        )
        return int((cursor.fetchone() or (0,))[0])


def test_thousands_of_lanes_take_no_more_locks_than_there_are_shards(lanes: list[int]) -> None:
    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve(lanes)
        assert sorted(context.lanes) == sorted(lanes)
        assert await elsewhere(locks_of_lanes) == SHARDS

    with_claims(scenario)
