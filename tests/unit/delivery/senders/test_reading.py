"""The deliveries that a sender reads, their order, and the lanes in which it finds work."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from delivery.models import Delivery, Status
from delivery.models.shard import SHARDS
from delivery.senders.clock import seconds_since_boot
from delivery.senders.parcel import Parcel
from delivery.senders.read_connection import ReadConnection, RunRequest, requests_together
from delivery.senders.run_result import PieceLimits
from subscriptions.models import Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def request(lane_id: int, **fields: Any) -> RunRequest:
    """Return the request of a read in the order of ids, unless the fields say otherwise."""
    max_bytes, in_memory = fields.pop("max_bytes", 10_000_000), fields.pop("in_memory", ())
    given = {"rows": 100, "skipped_rows": 50} | fields
    limits = PieceLimits(**{"fresh_rows": given["rows"]} | given)
    return RunRequest(lane_id=lane_id, limits=limits, max_bytes=max_bytes, in_memory=in_memory)


def read(lane_id: int, **fields: Any) -> list[Parcel]:
    wanted = request(lane_id, **fields)

    async def reading() -> list[Parcel]:
        reader = ReadConnection(name="inturn reader test")
        answering = asyncio.create_task(reader.run())
        try:
            return await reader.parcels(wanted)
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            await reader.close()

    return asyncio.run(reading())


def lanes_with_work() -> set[int]:
    async def reading() -> set[int]:
        reader = ReadConnection(name="inturn reader test")
        try:
            return {
                row["lane_id"]
                for row in await reader.fetch("lanes_with_work", {"shard": list(range(SHARDS))})
            }
        finally:
            await reader.close()

    return asyncio.run(reading())


@pytest.fixture
def subscription(transactional_db: None) -> Subscription:
    return factories.subscription()


def pending(subscription: Subscription, count: int = 1, **fields: Any) -> list[Delivery]:
    return [factories.delivery(subscription=subscription, **fields) for _ in range(count)]


def ids(parcels: list[Parcel]) -> list[int]:
    return [parcel.delivery_id for parcel in parcels]


def test_the_oldest_delivery_of_all_subscriptions_is_first(subscription: Subscription) -> None:
    other = factories.subscription(subscriber=subscription.subscriber)
    rows = [pending(waiting)[0].pk for waiting in (subscription, other, other, subscription, other)]
    assert ids(read(subscription.subscriber.lane.pk)) == rows
    assert ids(read(subscription.subscriber.lane.pk, rows=3)) == rows[:3]


def test_a_parcel_contains_the_request(subscription: Subscription) -> None:
    (row,) = pending(subscription)
    (parcel,) = read(row.lane_id or 0)
    assert parcel.body == b'{"number": 1}'
    assert parcel.event == subscription.event_type.name
    assert (parcel.message_id, parcel.attempts, parcel.content_type) == (
        row.message_id,
        0,
        "application/json",
    )


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PENDING, Status.IN_FLIGHT}))
def test_settled_deliveries_are_never_read(subscription: Subscription, status: Status) -> None:
    (row,) = pending(subscription, status=status)
    assert read(row.lane_id or 0) == []
    assert lanes_with_work() == set()


def test_held_deliveries_are_neither_read_nor_wake_the_lane(
    subscription: Subscription,
) -> None:
    lane_id = subscription.subscriber.lane.pk
    pending(subscription, 3)
    Subscription.objects.update(status=SubscriptionStatus.INACTIVE)
    assert read(lane_id) == []
    assert lanes_with_work() == set()
    other = factories.subscription(subscriber=subscription.subscriber)
    (flowing,) = pending(other)
    assert ids(read(lane_id)) == [flowing.pk]
    assert lanes_with_work() == {lane_id}


def test_another_subscribers_deliveries_are_not_read(subscription: Subscription) -> None:
    factories.delivery()
    assert read(subscription.subscriber.lane.pk) == []


def test_old_failures_take_at_most_their_share_of_a_run(subscription: Subscription) -> None:
    skipped = pending(subscription, 6, skipped=True, attempts=1)
    fresh = pending(subscription, 6)
    found = read(subscription.subscriber.lane.pk, rows=6, skipped_rows=3)
    assert ids(found) == [row.pk for row in [*skipped[:3], *fresh[:3]]]


def test_those_never_tried_come_first_if_requested(subscription: Subscription) -> None:
    skipped = pending(subscription, 3, skipped=True, attempts=1)
    fresh = pending(subscription, 3)
    late = pending(subscription, skipped=True, attempts=1)
    first = {"is_fresh_first": True, "skipped_rows": 3}
    lane_id = subscription.subscriber.lane.pk
    assert ids(read(lane_id, **first)) == [row.pk for row in [*fresh, *skipped]]
    assert ids(read(lane_id, **first, rows=4)) == [row.pk for row in [*fresh, skipped[0]]]
    assert ids(read(lane_id, **first, fresh_rows=1)) == [row.pk for row in [fresh[0], *skipped]]
    assert ids(read(lane_id, rows=7)) == [row.pk for row in [*skipped, *fresh, *late]]
    # What a limit of bytes leaves out is of the end of this order.
    assert ids(read(lane_id, **first, max_bytes=14)) == [row.pk for row in fresh[:2]]


def test_a_run_that_goes_on_leaves_out_what_it_has_tried(subscription: Subscription) -> None:
    now = timezone.now()
    pending(subscription, skipped=True, attempts=1, next_attempt_at=now)
    (earlier,) = pending(
        subscription, skipped=True, attempts=1, next_attempt_at=now - timedelta(hours=2)
    )
    began_at = seconds_since_boot() - 3600
    assert ids(read(subscription.subscriber.lane.pk, began_at=began_at)) == [earlier.pk]


def test_while_old_failures_pause_only_new_deliveries_are_read(subscription: Subscription) -> None:
    pending(subscription, 2, skipped=True, attempts=1)
    (fresh,) = pending(subscription)
    assert ids(read(subscription.subscriber.lane.pk, skipped_rows=0)) == [fresh.pk]


def test_deliveries_in_memory_are_not_read_again(subscription: Subscription) -> None:
    rows = [row.pk for row in pending(subscription, 5)]
    assert ids(read(subscription.subscriber.lane.pk, in_memory=tuple(rows[:2]))) == rows[2:]


def test_a_cancelled_request_adds_nothing_to_the_next(subscription: Subscription) -> None:
    rows = [row.pk for row in pending(subscription, 2)]
    wanted_each = request(subscription.subscriber.lane.pk, rows=10, skipped_rows=5)

    async def reading() -> tuple[list[Parcel], ...]:
        reader = ReadConnection(name="inturn reader test")
        # All requests are there before the reader looks, so that one statement answers them.
        given_up, *wanted = (asyncio.create_task(reader.parcels(wanted_each)) for _ in range(3))
        await asyncio.sleep(0)
        given_up.cancel()
        answering = asyncio.create_task(reader.run())
        try:
            return tuple(await asyncio.gather(*wanted))
        finally:
            answering.cancel()
            await asyncio.gather(answering, given_up, return_exceptions=True)
            await reader.close()

    assert [ids(parcels) for parcels in asyncio.run(reading())] == [rows, rows]


def test_a_migration_while_it_runs_does_not_stop_the_reader() -> None:
    async def reading() -> None:
        reader = ReadConnection(name="inturn reader test")
        try:
            for type_ in ("int", "bigint"):
                await reader.fetch("lanes_with_work", {"shard": list(range(SHARDS))})
                await elsewhere(_alter_a_table, type_)
        finally:
            await reader.close()

    asyncio.run(reading())


def _alter_a_table(type_: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE delivery_delivery ALTER COLUMN lane_id TYPE {type_}")


def test_a_delivery_that_becomes_visible_late_is_read_although_later_ones_were_sent(
    subscription: Subscription,
) -> None:
    late, sent = pending(subscription, 2)
    Delivery.objects.filter(pk=sent.pk).update(
        status=Status.DELIVERED, settled_at=sent.message.published_at
    )
    assert ids(read(subscription.subscriber.lane.pk)) == [late.pk]


def test_a_run_is_bounded_by_bytes_but_never_empty(subscription: Subscription) -> None:
    big = factories.message(b"x" * 1000, event_type=subscription.event_type)
    rows = [row.pk for row in pending(subscription, 5, message=big)]
    assert ids(read(subscription.subscriber.lane.pk, max_bytes=2500)) == rows[:3]
    assert ids(read(subscription.subscriber.lane.pk, max_bytes=1)) == rows[:1]


def test_of_old_failures_the_least_recently_tried_are_first(subscription: Subscription) -> None:
    now = timezone.now()
    poisoned = [
        *pending(
            subscription, skipped=True, attempts=9, next_attempt_at=now - timedelta(seconds=2)
        ),
        *pending(subscription, 3, skipped=True, attempts=9, next_attempt_at=now),
    ]
    (forgotten,) = pending(
        subscription, skipped=True, attempts=1, next_attempt_at=now - timedelta(hours=1)
    )
    assert ids(read(subscription.subscriber.lane.pk, rows=4, skipped_rows=2)) == [
        poisoned[0].pk,
        forgotten.pk,
    ]


def test_many_lanes_that_are_read_at_once_each_get_their_own(transactional_db: None) -> None:
    rows = [factories.delivery() for _ in range(25)]
    lanes = [row.lane_id for row in rows]

    async def reading() -> list[list[int]]:
        reader = ReadConnection(name="inturn reader test")
        answering = asyncio.create_task(reader.run())
        try:
            requests = [request(id, rows=9, skipped_rows=0) for id in lanes if id]
            await asyncio.gather(*map(reader.parcels, requests))
            # Once more, now that the row counts of the lanes are known.
            return [ids(answer) for answer in await asyncio.gather(*map(reader.parcels, requests))]
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            await reader.close()

    assert asyncio.run(reading()) == [[row.pk] for row in rows]


@pytest.mark.parametrize(
    ("requests", "rows", "together"),
    [
        (10, 10, 50),
        (10, 0, 50),
        (50, 50, 50),
        (10, 20, 25),
        (10, 50, 10),
        (10, 1_000, 10),
        (1, 500, 10),
    ],
)
def test_the_fewer_rows_lanes_have_the_more_are_read_together(
    requests: int, rows: int, together: int
) -> None:
    assert requests_together(requests, rows=rows) == together


@pytest.mark.parametrize(
    ("waiting", "rows", "size", "together"),
    [
        (900, 50, 50_000, 50),
        (3_000, 50, 50_000, 150),
        (10_000, 50, 50_000, 250),
        (10_000, 0, 0, 250),
        (10_000, 100, 100_000, 125),
        (10_000, 50, 50 * 1024 * 1024, 50),
        (10_000, 50, 4 * 1024 * 1024, 100),
    ],
)
def test_the_more_lanes_wait_the_more_are_read_together(
    waiting: int, rows: int, size: int, together: int
) -> None:
    assert requests_together(50, rows=rows, size=size, waiting=waiting) == together
