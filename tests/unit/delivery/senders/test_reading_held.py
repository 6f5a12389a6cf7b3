"""HELD deliveries are not read, in each kind of lane and for each kind of hold."""

from collections.abc import Callable
from typing import Any

import pytest

from delivery.database.statements import statement
from delivery.models import Delivery, Lane, LaneKind
from delivery.support import held_objects, toggle
from subscriptions.models import Kind, Processing, Subscription
from tests.support import factories
from tests.unit.delivery.senders.reading import fetch
from tests.unit.delivery.senders.test_reading import ids, lanes_with_work, read

pytestmark = pytest.mark.django_db(transaction=True)

Toggle = Callable[[Subscription], Any]

HOLDS: dict[str, Toggle] = {
    "subscription": lambda row: toggle.hold_owner(row, actor="ann"),
    "subscriber": lambda row: toggle.hold_owner(row.subscriber, actor="ann"),
    "inactive subscriber": lambda row: toggle.deactivate_owner(row.subscriber, actor="ann"),
    "all sending": lambda _: toggle.hold_owner(held_objects.installation(), actor="ann"),
}
RELEASES: dict[str, Toggle] = {
    "subscription": lambda row: toggle.activate_owner(row, actor="ann"),
    "subscriber": lambda row: toggle.activate_owner(row.subscriber, actor="ann"),
    "inactive subscriber": lambda row: toggle.activate_owner(row.subscriber, actor="ann"),
    "all sending": lambda _: toggle.activate_owner(held_objects.installation(), actor="ann"),
}


def read_independent(name: str, lane_id: int | None) -> list[int]:
    parameters: dict[str, Any] = {
        "lane": lane_id,
        "rows": 10,
        "bytes": 1_000_000,
        "in_memory": [],
        "most": None,
    }
    parameters |= {"excluded": [], "excluded_origins": [], "is_traced": False}
    return [row["id"] for row in fetch(statement(name), parameters)]


@pytest.mark.parametrize("by", HOLDS)
def test_what_is_held_is_not_read_and_is_read_in_order_when_it_is_released(by: str) -> None:
    subscription = factories.subscription()
    rows = [factories.delivery(subscription=subscription).pk for _ in range(3)]
    lane_id = subscription.subscriber.lane.pk
    HOLDS[by](subscription)
    assert read(lane_id) == []
    assert lanes_with_work() == set()
    RELEASES[by](subscription)
    assert ids(read(lane_id)) == rows
    assert lanes_with_work() == {lane_id}


def test_the_other_subscriptions_of_a_subscriber_are_read_beside_a_held_one() -> None:
    held = factories.subscription()
    other = factories.subscription(subscriber=held.subscriber)
    factories.delivery(subscription=held)
    row = factories.delivery(subscription=other)
    toggle.hold_owner(held, actor="ann")
    assert ids(read(held.subscriber.lane.pk)) == [row.pk]


def test_a_subscription_that_is_held_itself_stays_so_when_its_subscriber_is_released() -> None:
    held = factories.subscription()
    factories.delivery(subscription=held)
    toggle.hold_owner(held, actor="ann")
    toggle.deactivate_owner(held.subscriber, actor="ann")
    toggle.activate_owner(held.subscriber, actor="ann")
    assert read(held.subscriber.lane.pk) == []


@pytest.mark.parametrize("by", HOLDS)
def test_what_a_concurrent_subscriber_and_the_retry_lane_hold_is_not_read(by: str) -> None:
    subscriber = factories.subscriber(processing=Processing.CONCURRENT)
    subscription = factories.subscription(subscriber=subscriber)
    retry = Lane.objects.get(kind=LaneKind.RETRY)
    lanes = [subscriber.lane.pk, retry.pk]
    for lane_id in lanes:
        factories.delivery(subscription=subscription, lane_id=lane_id)
    HOLDS[by](subscription)
    assert [len(read_independent("read_due", lane_id)) for lane_id in lanes] == [0, 0]
    RELEASES[by](subscription)
    assert [len(read_independent("read_due", lane_id)) for lane_id in lanes] == [1, 1]


class TestHeldQueues:
    def test_others_of_the_group_get_what_a_held_one_would_have_got(self) -> None:
        first, second = group(2)
        toggle.hold_owner(first.subscription, actor="ann")
        assert read_independent("read_groups", first.lane_id) == [second.pk]

    @pytest.mark.parametrize("by", HOLDS)
    def test_a_group_of_which_all_are_held_waits(self, by: str) -> None:
        rows = group(2)
        for row in rows:
            HOLDS[by](row.subscription)
        assert read_independent("read_groups", rows[0].lane_id) == []
        for row in rows:
            RELEASES[by](row.subscription)
        assert read_independent("read_groups", rows[0].lane_id) == [row.pk for row in rows]


def group(count: int) -> list[Delivery]:
    """Create one QUEUE message for so many endpoints."""
    event_type = factories.event_type(kind=Kind.QUEUE)
    message = factories.message(event_type=event_type)
    lane = Lane.objects.get(kind=LaneKind.QUEUE, number=message.pk % 5)
    return [
        factories.delivery(
            message=message,
            subscription=factories.subscription(event_type=event_type),
            lane=lane,
            queue_group=0,
        )
        for _ in range(count)
    ]
