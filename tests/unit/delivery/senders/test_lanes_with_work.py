"""The lanes in which a sender finds work: `lanes_with_work.sql`."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.database.statements import statement
from delivery.models import Delivery, Lane, LaneKind, Status
from delivery.models.shard import SHARDS
from delivery.support import toggle
from subscriptions.models import Processing, Subscription
from tests.support import factories
from tests.unit.delivery.senders.read_statements import fetch

pytestmark = pytest.mark.django_db

MINUTE = timedelta(seconds=60)


def lanes_with_work() -> set[int]:
    rows = fetch(statement("lanes_with_work"), {"shard": list(range(SHARDS))})
    return {row["lane_id"] for row in rows}


@pytest.fixture
def concurrent() -> Subscription:
    return factories.subscription(subscriber=factories.subscriber(processing=Processing.CONCURRENT))


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PENDING, Status.IN_FLIGHT}))
def test_a_settled_delivery_is_no_work(status: Status) -> None:
    factories.delivery(status=status)
    assert lanes_with_work() == set()


def test_a_held_delivery_is_no_work_until_it_is_released() -> None:
    held = factories.delivery().subscription
    lane_id = held.subscriber.lane.pk
    assert lanes_with_work() == {lane_id}
    toggle.hold_owner(held, actor="ann")
    assert lanes_with_work() == set()
    factories.delivery(subscription=factories.subscription(subscriber=held.subscriber))
    assert lanes_with_work() == {lane_id}


def test_a_concurrent_lane_has_work_when_a_delivery_is_new_or_due(
    concurrent: Subscription,
) -> None:
    lane_id = concurrent.subscriber.lane.pk
    put_off = factories.delivery(
        subscription=concurrent, skipped=True, attempts=1, next_attempt_at=timezone.now() + MINUTE
    )
    assert lane_id not in lanes_with_work()
    Delivery.objects.filter(pk=put_off.pk).update(next_attempt_at=timezone.now() - MINUTE)
    assert lane_id in lanes_with_work()
    put_off.delete()
    factories.delivery(subscription=concurrent)
    assert lane_id in lanes_with_work()


def test_a_blocked_lane_has_work_although_no_delivery_is_due(concurrent: Subscription) -> None:
    put_off = factories.delivery(
        subscription=concurrent, skipped=True, attempts=1, next_attempt_at=timezone.now() + MINUTE
    )
    lane_id = concurrent.subscriber.lane.pk
    Lane.objects.filter(pk=lane_id).update(state="BLOCKED", delivery_id=put_off.pk)
    assert lanes_with_work() == {lane_id}
    assert Lane.objects.get(kind=LaneKind.RETRY).pk not in lanes_with_work()
