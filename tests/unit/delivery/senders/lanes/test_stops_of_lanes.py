"""A lane is BLOCKED exactly as long as a cause stops it, whichever sender served it before."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.statements import statement
from delivery.models import Delivery, EndpointHealth, JournalEntry, Lane, LaneState, Status
from delivery.models.shard import SHARDS
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from subscriptions.models import Processing, Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.senders.read_statements import fetch
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

BOTH = pytest.mark.parametrize("processing", list(Processing))


def blocked(head: Delivery, *, due_in: float = -1, **fields: Any) -> Lane:
    """Return the lane as a killed or stopped sender left it."""
    lane: Lane = head.subscription.subscriber.lane
    lane.state, lane.delivery_id, lane.failures, lane.reason = (
        LaneState.BLOCKED,
        head.pk,
        1,
        "timed out",
    )
    lane.next_try_at = timezone.now() + timedelta(seconds=due_in)
    lane.run_is_concurrent = head.subscription.subscriber.processing == Processing.CONCURRENT
    for name, value in fields.items():
        setattr(lane, name, value)
    lane.save()
    factories.endpoint_down(head, reason=lane.reason, next_try_at=lane.next_try_at)
    return lane


def subscription(processing: str = Processing.CONCURRENT, **fields: Any) -> Subscription:
    return factories.subscription(subscriber=factories.subscriber(processing=processing), **fields)


def lanes_with_work() -> list[int]:
    return [
        row["lane_id"]
        for row in fetch(statement("lanes_with_work"), {"shard": list(range(SHARDS))})
    ]


def state(lane: Lane) -> str:
    lane.refresh_from_db()
    return lane.state


def serve(lane: Lane, *, until: Callable[[], bool]) -> None:
    """Serve the lane with a sender until that is true."""

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        async with asyncio.timeout(30):
            while not await elsewhere(until):
                await asyncio.sleep(0.02)

    with_claims(scenario)


def serve_and_release(lane: Lane) -> None:
    """Serve the lane with a sender, and release it at once."""

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        task = context.lanes[lane.pk].task
        assert task is not None
        claims.close()
        await task

    with_claims(scenario)


@BOTH
def test_a_blocked_lane_is_served_although_no_delivery_waits(processing: str) -> None:
    lane = blocked(factories.delivery(Status.FAILED, subscription=subscription(processing)))
    assert lanes_with_work() == [lane.pk]
    serve(lane, until=lambda: state(lane) != LaneState.BLOCKED)
    assert state(lane) == LaneState.IDLE
    assert lanes_with_work() == []
    assert list(JournalEntry.objects.values_list("text", flat=True)) == ["Resumed."]


@BOTH
def test_a_blocked_and_held_lane_is_served_once(processing: str) -> None:
    lane = blocked(
        factories.delivery(
            subscription=subscription(processing, status=SubscriptionStatus.INACTIVE)
        )
    )
    assert lanes_with_work() == [lane.pk]
    serve(lane, until=lambda: state(lane) != LaneState.BLOCKED)
    assert state(lane) == LaneState.IDLE
    assert lanes_with_work() == []


@BOTH
@pytest.mark.parametrize("status", [SubscriptionStatus.ACTIVE, SubscriptionStatus.INACTIVE])
def test_an_endpoint_for_which_nothing_waits_stops_nothing_and_stays_down(
    processing: str, status: str
) -> None:
    of = subscription(processing, status=status)
    lane = blocked(factories.delivery(Status.FAILED, subscription=of))
    serve(lane, until=lambda: state(lane) == LaneState.IDLE)
    assert EndpointHealth.objects.filter(lane_id=lane.pk).exists()
    # And it gives no work.
    assert lanes_with_work() == []


def test_an_ended_cause_is_removed_when_the_lane_is_released() -> None:
    lane = blocked(factories.delivery(Status.FAILED, subscription=subscription()))
    serve_and_release(lane)
    assert state(lane) == LaneState.IDLE


def test_a_lane_whose_endpoint_is_not_down_any_more_flows() -> None:
    """Its subscription was deleted, or another lane reached the endpoint."""
    lane = blocked(factories.delivery(Status.FAILED, subscription=subscription()))
    EndpointHealth.objects.all().delete()
    assert lanes_with_work() == [lane.pk]
    serve_and_release(lane)
    assert state(lane) == LaneState.IDLE


def test_a_remaining_cause_keeps_a_released_lane_blocked() -> None:
    head = factories.delivery(
        subscription=subscription(), next_attempt_at=timezone.now() + timedelta(hours=1)
    )
    lane = blocked(head)
    serve_and_release(lane)
    assert state(lane) == LaneState.BLOCKED
    assert lane.delivery_id == head.pk


def test_an_endpoint_that_is_down_blocks_although_its_failure_is_settled() -> None:
    """Otherwise messages that are tried once would open and block the lane by turns."""
    lane = blocked(factories.delivery(Status.FAILED, subscription=subscription()), due_in=600)
    serve_and_release(lane)
    assert state(lane) == LaneState.BLOCKED


def test_after_a_crash_the_lane_is_known_to_be_concurrent() -> None:
    """Otherwise, if the next sender dies too, the lane would be presumed ordered, and its row no
    reason to stop.
    """
    head = factories.delivery(
        subscription=subscription(), next_attempt_at=timezone.now() + timedelta(hours=1)
    )
    lane = blocked(head, run_ids=[head.pk + 1], run_attempts=[0], due_in=600)

    serve_and_release(lane)
    assert state(lane) == LaneState.BLOCKED
    assert (lane.run_ids, lane.run_is_concurrent) == ([], True)
    serve_and_release(lane)
    assert state(lane) == LaneState.BLOCKED


def test_our_own_fault_neither_ends_nor_starts_an_outage() -> None:
    """It settles a VOLATILE delivery; the endpoint has not answered."""
    of = subscription()
    of.secrets.update(secret="no secret")
    head = factories.delivery(subscription=of, next_attempt_at=timezone.now() + timedelta(hours=1))
    lane = blocked(head)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time()")
        (started_at,) = cursor.fetchone() or (None,)
    volatile = factories.delivery(subscription=of, server_started_at=started_at)

    def is_settled() -> bool:
        volatile.refresh_from_db()
        return volatile.status == Status.FAILED

    serve(lane, until=is_settled)
    assert state(lane) == LaneState.BLOCKED
    assert lane.delivery_id == head.pk
