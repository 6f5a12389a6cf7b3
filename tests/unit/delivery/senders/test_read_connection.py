"""Reading runs: their order and limits, for many lanes at once, through lost connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection
from django.utils import timezone

from delivery.models import Delivery, Lane, LaneState, Message, Status
from delivery.senders.clock import seconds_since_boot
from delivery.senders.parcel import Parcel
from delivery.senders.read_connection import (
    RECONNECT_SECONDS,
    ReadConnection,
    RunRequest,
    requests_together,
)
from delivery.senders.run_result import PieceLimits
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.senders.running import elsewhere
from tests.unit.delivery.senders.window_lanes import WindowLane

pytestmark = pytest.mark.django_db(transaction=True)


def request(lane_id: int, **fields: Any) -> RunRequest:
    """Return the request of a read in the order of ids, unless the fields say otherwise."""
    max_bytes, in_memory = fields.pop("max_bytes", 10_000_000), fields.pop("in_memory", ())
    given = {"rows": 100, "skipped_rows": 50} | fields
    limits = PieceLimits(**{"fresh_rows": given["rows"]} | given)
    return RunRequest(lane_id=lane_id, limits=limits, max_bytes=max_bytes, in_memory=in_memory)


@asynccontextmanager
async def reading(*, is_traced: bool = False) -> AsyncIterator[ReadConnection]:
    """Yield a reading connection that answers requests."""
    connected = ReadConnection(name="inturn reader test")
    connected.is_traced = is_traced
    answering = asyncio.create_task(connected.run())
    try:
        yield connected
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        await connected.close()


def read(lane_id: int, **fields: Any) -> list[Parcel]:
    is_traced = fields.pop("is_traced", False)
    wanted = request(lane_id, **fields)

    async def parcels() -> list[Parcel]:
        async with reading(is_traced=is_traced) as connected:
            return await connected.parcels(wanted)

    return asyncio.run(parcels())


@pytest.fixture
def subscription(transactional_db: None) -> Subscription:
    return factories.subscription()


def pending(subscription: Subscription, count: int = 1, **fields: Any) -> list[Delivery]:
    return [factories.delivery(subscription=subscription, **fields) for _ in range(count)]


def ids(parcels: list[Parcel]) -> list[int]:
    return [parcel.delivery_id for parcel in parcels]


def test_the_oldest_delivery_of_all_subscriptions_is_first(subscription: Subscription) -> None:
    other = factories.subscription(subscriber=subscription.subscriber)
    rows = [pending(each)[0].pk for each in (subscription, other, other, subscription, other)]
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


def test_a_cancelled_request_adds_nothing_to_the_next(subscription: Subscription) -> None:
    rows = [row.pk for row in pending(subscription, 2)]
    wanted_each = request(subscription.subscriber.lane.pk, rows=10, skipped_rows=5)

    async def parcels() -> tuple[list[Parcel], ...]:
        async with reading() as connected:
            # All requests are there before any is answered, so that one statement answers them.
            given_up, *wanted = (connected.parcels(wanted_each) for _ in range(3))
            tasks = [asyncio.create_task(each) for each in (given_up, *wanted)]
            tasks[0].cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(found[0], asyncio.CancelledError)
            return tuple(each for each in found[1:] if not isinstance(each, BaseException))

    assert [ids(each) for each in asyncio.run(parcels())] == [rows, rows]


def test_a_migration_while_it_runs_does_not_stop_the_reading() -> None:
    async def scenario() -> None:
        async with reading() as connected:
            for type_ in ("real", "double precision"):
                await connected.fetch("catching_up")
                await elsewhere(_alter_a_table, type_)

    asyncio.run(scenario())


def _alter_a_table(type_: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE delivery_lane ALTER COLUMN catch_up_rate TYPE {type_}")


def test_a_delivery_that_becomes_visible_late_is_read_although_later_ones_were_sent(
    subscription: Subscription,
) -> None:
    late, sent = pending(subscription, 2)
    Delivery.objects.filter(pk=sent.pk).update(
        status=Status.DELIVERED, settled_at=sent.message.published_at
    )
    assert ids(read(subscription.subscriber.lane.pk)) == [late.pk]


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
    requests = [request(row.lane_id, rows=9, skipped_rows=0) for row in rows if row.lane_id]

    async def found() -> list[list[int]]:
        async with reading() as connected:
            await asyncio.gather(*map(connected.parcels, requests))
            # Once more, now that the row counts of the lanes are known.
            answers = await asyncio.gather(*map(connected.parcels, requests))
            return [ids(answer) for answer in answers]

    assert asyncio.run(found()) == [[row.pk] for row in rows]


def test_a_parcel_has_its_deadline_by_the_clock_of_the_sender(subscription: Subscription) -> None:
    pending(subscription, expires_at=timezone.now() + timedelta(seconds=60))
    pending(subscription)
    perishable, lasting = read(subscription.subscriber.lane.pk)
    assert perishable.deadline is not None
    assert 50 < perishable.deadline - seconds_since_boot() <= 60
    assert lasting.deadline is None
    assert not lasting.is_volatile


def test_a_parcel_has_the_moment_when_it_was_due_by_the_clock_of_the_sender(
    subscription: Subscription,
) -> None:
    pending(subscription)
    Message.objects.update(published_at=TransactionNow() - timedelta(seconds=60))
    (parcel,) = read(subscription.subscriber.lane.pk, is_traced=True)
    assert parcel.due_at is not None
    assert 60 <= seconds_since_boot() - parcel.due_at < 120


@pytest.mark.django_db
def test_the_delivery_that_blocks_a_lane_is_due_when_the_lanes_pause_is_over() -> None:
    lane = WindowLane("SERIAL")
    row, behind = lane.add(attempts=1), lane.add()
    Message.objects.update(published_at=TransactionNow() - timedelta(seconds=60))
    at = TransactionNow() - timedelta(seconds=20)
    Lane.objects.filter(pk=lane.lane.pk).update(
        state=LaneState.BLOCKED, delivery_id=row.pk, next_try_at=at
    )
    found = {each["id"]: each["seconds_due"] for each in lane.rows(is_traced=True)}
    assert found[row.pk] == pytest.approx(20, abs=5)
    assert found[behind.pk] == pytest.approx(60, abs=5)


def test_a_read_that_is_repeated_counts_from_its_last_repetition(transactional_db: None) -> None:
    async def scenario() -> None:
        async with reading() as connected:
            await connected.fetch("server_process")
            await elsewhere(_end_reading_session)
            before = seconds_since_boot()
            await connected.fetch("server_process")
            assert connected.requested_at >= before + RECONNECT_SECONDS

    asyncio.run(scenario())


def _end_reading_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'inturn reader test'"
        )


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
