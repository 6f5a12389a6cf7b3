"""A change of configuration applies to the next post, in spite of a committer's caches."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.connections import connection_parameters
from subscriptions.models import (
    EventType,
    MatchMode,
    Mode,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from tests.support import factories
from tests.unit.delivery.incoming.short_way.posting import JSON, Posting, with_intake
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def _revoke() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subscriptions_apikey SET revoked_at = %s", [timezone.now()])


CHANGES: dict[str, tuple[Callable[[], Any], tuple[int, int | None]]] = {
    "nothing": (lambda: None, (202, 2)),
    "a subscription is made INACTIVE": (
        lambda: Subscription.objects.filter(mode=Mode.PULL).update(
            status=SubscriptionStatus.INACTIVE
        ),
        (202, 1),
    ),
    "a subscription is made ACTIVE": (
        lambda: Subscription.objects.update(status=SubscriptionStatus.ACTIVE),
        (202, 3),
    ),
    "a filter is removed": (
        lambda: Subscription.objects.update(filter="", filter_identity=""),
        (202, 3),
    ),
    "a subscription is new": (
        lambda: factories.subscription(event_type=EventType.objects.get(name="Build.Done")),
        (202, 3),
    ),
    "a subscriber wants the first only": (
        lambda: Subscriber.objects.update(match_mode=MatchMode.FIRST),
        (202, 2),
    ),
    "the key is revoked": (_revoke, (401, None)),
    "the event type wants a schema": (
        lambda: EventType.objects.filter(name="Build.Done").update(json_schema={"type": "array"}),
        (422, None),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_for_the_next_post(key: str, wanted: EventType, change: str) -> None:
    """In spite of the intake's caches."""
    make, (status, deliveries) = CHANGES[change]

    async def scenario(posting: Posting) -> None:
        for _ in range(5):
            before = await posting.post(wanted.name, key=key, headers=JSON)
            assert (before.content["deliveries"], before.is_short) == (2, True)
        await elsewhere(make)
        after = await posting.post(wanted.name, key=key, headers=JSON)
        assert (after.status, after.content.get("deliveries")) == (status, deliveries)

    with_intake(scenario)


def test_a_change_that_commits_late_counts_from_then_on(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        async def deliveries() -> int:
            answer = await posting.post(wanted.name, key=key, headers=JSON)
            assert answer.is_short
            number: int = answer.content["deliveries"]
            return number

        with psycopg.connect(**connection_parameters()) as slow:
            slow.execute(
                "UPDATE subscriptions_subscription SET status = 'INACTIVE' WHERE mode = 'PULL'"
            )
            # Begun later, committed earlier.
            await elsewhere(factories.event_type)
            assert [await deliveries() for _ in range(3)] == [2, 2, 2]
            slow.commit()
        assert await deliveries() == 1

    with_intake(scenario)
