"""Since when a delivery is due: the reading statements, and the phase `queue` of its trace."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection

from delivery.database.statements import statement
from delivery.models import Delivery, Lane, LaneKind, LaneState, Message
from delivery.models.delivery import Redelivery
from delivery.senders.clock import seconds_since_boot
from delivery.senders.http.phases import Phases
from delivery.senders.parcel import Parcel
from delivery.senders.read_connection import RECONNECT_SECONDS, ReadConnection, RunRequest
from delivery.senders.run_result import PieceLimits
from subscriptions.models import Kind, Processing
from tests.support import factories
from tests.unit.delivery.senders.reading import fetch, run_parameters
from tests.unit.delivery.senders.running import elsewhere
from tests.unit.delivery.senders.test_reading_by_priority import parameters as by_priority
from tests.unit.delivery.senders.test_reading_due import read as read_due
from tests.unit.delivery.senders.test_reading_groups import parameters as of_groups

Read = Callable[[Delivery, bool], list[dict[str, Any]]]

# The ages of the message and of the moment of the retry, in seconds.
PUBLISHED, RETRY = 60.0, 20.0


def _lane(row: Delivery) -> Lane:
    assert row.lane is not None
    return row.lane


def _in_order(row: Delivery, is_traced: bool) -> list[dict[str, Any]]:
    return fetch(statement("read_runs"), run_parameters(_lane(row).pk) | {"is_traced": is_traced})


def _due(row: Delivery, is_traced: bool) -> list[dict[str, Any]]:
    return read_due(LaneKind.TOPIC, lane=row.lane_id, is_traced=is_traced)


def _by_priority(row: Delivery, is_traced: bool) -> list[dict[str, Any]]:
    of = row.subscription.subscriber
    return fetch(statement("read_by_priority"), by_priority(of, 8, is_traced=is_traced))


def _groups(row: Delivery, is_traced: bool) -> list[dict[str, Any]]:
    return fetch(statement("read_groups"), of_groups(_lane(row), is_traced=is_traced))


def published(way: Read, **fields: Any) -> Delivery:
    """Create a delivery that this way of reading finds, of a message published a minute ago."""
    if way is _groups:
        subscription = factories.subscription(event_type=factories.event_type(kind=Kind.QUEUE))
        fields |= {"lane": Lane.objects.get(kind=LaneKind.QUEUE, number=0), "queue_group": 0}
    else:
        processing = Processing.SERIAL if way is _in_order else Processing.CONCURRENT
        subscription = factories.subscription(
            subscriber=factories.subscriber(processing=processing)
        )
    row = factories.delivery(subscription=subscription, **fields)
    Message.objects.update(published_at=TransactionNow() - timedelta(seconds=PUBLISHED))
    return row


def seconds_due(way: Read, row: Delivery, *, is_traced: bool = True) -> float | None:
    (found,) = way(row, is_traced)
    seconds: float | None = found["seconds_due"]
    return seconds


@pytest.mark.django_db
@pytest.mark.parametrize("way", [_in_order, _due, _by_priority, _groups])
class TestDueReading:
    """The database's clock stands still in a transaction, so the seconds are exact."""

    def test_the_first_attempt_is_due_when_the_message_is_published(self, way: Read) -> None:
        assert seconds_due(way, published(way)) == PUBLISHED

    def test_a_retry_is_due_when_its_pause_is_over(self, way: Read) -> None:
        row = published(way, attempts=1, skipped=True)
        Delivery.objects.update(next_attempt_at=TransactionNow() - timedelta(seconds=RETRY))
        assert seconds_due(way, row) == RETRY

    @pytest.mark.parametrize(
        "fields", [{"redelivery": Redelivery.RESUBMITTED}, {"replay_id": 1}, {"attempts": 1}]
    )
    def test_a_moment_that_no_row_has_is_not_known(self, way: Read, fields: dict[str, Any]) -> None:
        assert seconds_due(way, published(way, **fields)) is None

    def test_without_traces_nothing_is_computed(self, way: Read) -> None:
        assert seconds_due(way, published(way), is_traced=False) is None


@pytest.mark.django_db
def test_the_delivery_that_blocks_a_lane_is_due_when_the_lanes_pause_is_over() -> None:
    row = published(_in_order, attempts=1)
    behind = factories.delivery(subscription=row.subscription, message=row.message)
    Lane.objects.filter(pk=_lane(row).pk).update(
        state=LaneState.BLOCKED,
        delivery_id=row.pk,
        next_try_at=TransactionNow() - timedelta(seconds=RETRY),
    )
    found = {read["id"]: read["seconds_due"] for read in _in_order(row, True)}
    assert found == {row.pk: RETRY, behind.pk: PUBLISHED}


@pytest.mark.django_db(transaction=True)
def test_the_parcel_has_the_moment_by_the_clock_of_the_sender() -> None:
    row = published(_in_order)

    async def reading() -> Parcel:
        reader = ReadConnection(name="inturn reader test")
        reader.is_traced = True
        answering = asyncio.create_task(reader.run())
        try:
            limits = PieceLimits(rows=9, fresh_rows=9, skipped_rows=4)
            lane = RunRequest(lane_id=_lane(row).pk, limits=limits, max_bytes=9_999)
            (parcel,) = await reader.parcels(lane)
            return parcel
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            await reader.close()

    parcel = asyncio.run(reading())
    assert parcel.due_at is not None
    assert PUBLISHED <= seconds_since_boot() - parcel.due_at < 2 * PUBLISHED


@pytest.mark.django_db(transaction=True)
def test_a_read_that_is_repeated_counts_from_its_last_repetition() -> None:
    async def reading() -> None:
        reader = ReadConnection(name="inturn reader test")
        try:
            await reader.fetch("server_process")
            await elsewhere(_end_session_of_reader)
            before = seconds_since_boot()
            await reader.fetch("server_process")
            assert reader.requested_at >= before + RECONNECT_SECONDS
        finally:
            await reader.close()

    asyncio.run(reading())


def _end_session_of_reader() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'inturn reader test'"
        )


class TestQueuePhase:
    def test_the_queue_lasts_from_the_moment_that_it_is_due_to_the_start(self) -> None:
        due_at = seconds_since_boot() - PUBLISHED
        queued = Phases(due_at=due_at).seconds()["queue"]
        assert PUBLISHED <= queued <= seconds_since_boot() - due_at

    def test_it_is_never_negative(self) -> None:
        assert Phases(due_at=seconds_since_boot() + RETRY).seconds() == {"queue": 0.0}

    def test_it_is_left_out_if_the_moment_is_not_known(self) -> None:
        assert Phases(due_at=None).seconds() == {}
