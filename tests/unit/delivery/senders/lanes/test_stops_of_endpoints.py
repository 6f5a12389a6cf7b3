"""DOWN ends when the endpoint is reached or replaced, never because nothing waits for it."""

import asyncio

import pytest
from django.utils import timezone

from delivery.models import Delivery, EndpointHealth, Lane, LaneState, Status
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.senders.lanes import stops
from delivery.support import unblock
from subscriptions.models import Processing
from tests.support import factories
from tests.support.receivers import OK, Answer, Close, Receiver
from tests.unit.delivery.senders.lanes.test_stops_rows import (
    commit,
    down,
    eventually,
    queue_lane,
    serving,
)
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def are_down() -> list[int]:
    """Return the subscriptions whose endpoints are DOWN."""
    return list(EndpointHealth.objects.order_by("pk").values_list("pk", flat=True))


def test_a_queue_worker_that_always_refuses_stays_down_beside_a_healthy_one(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stops, "REVIEW_SECONDS", 0.0)
    bad, good = receiver.endpoint("bad"), receiver.endpoint("good")
    bad.always(Answer(500))
    event_type = factories.event_type(kind="QUEUE")
    policy = factories.policy(pause_seconds=1, pause_max_seconds=1)
    of_bad, of_good = (
        factories.subscription(event_type=event_type, endpoint=endpoint.url, policy=policy)
        for endpoint in (bad, good)
    )
    lane = Lane.objects.get(pk=queue_lane())

    def publish() -> None:
        message = factories.message(event_type=event_type)
        for of in (of_bad, of_good):
            factories.delivery(subscription=of, message=message, lane=lane, queue_group=0)

    for _ in range(20):
        publish()
    commit((lane.pk, [down(of_bad, lane.pk, wait_seconds=0.0)]))

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        await elsewhere(good.wait_for_count, 20)
        served = context.lanes[lane.pk]
        # Its pause is over, and the sender has found that nothing waits for it.
        while served.stops.is_blocked:
            await asyncio.sleep(0.01)
        assert await elsewhere(are_down) == [of_bad.pk]
        assert bad.received
        # It is up when it takes a message.
        bad.always(OK)
        good.always(Answer(500))
        await elsewhere(publish)
        served.nudge()
        await eventually(lambda: of_bad.pk not in are_down())

    serving(scenario)


def test_a_success_in_the_retry_lane_ends_it_for_the_subscribers_lane(receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.next(Close())
    owner = factories.subscriber(processing=Processing.CONCURRENT, max_in_flight=4)
    of = factories.subscription(
        subscriber=owner, endpoint=endpoint.url, policy=factories.policy("workfront-2017")
    )
    moved = factories.delivery(subscription=of)
    retry = Lane.objects.get(kind="RETRY", number=0)

    async def scenario(claims: Claims, _: SenderContext) -> None:
        await claims.serve([owner.lane.pk, retry.pk])
        await eventually(lambda: are_down() == [of.pk])
        await elsewhere(_make_due, moved)
        await claims.serve([retry.pk])
        await eventually(lambda: are_down() == [])
        # The subscriber's lane finds that the row is gone.
        await eventually(lambda: Lane.objects.get(pk=owner.lane.pk).state == LaneState.IDLE)

    serving(scenario)


def test_an_ordered_lane_without_deliveries_flows_and_its_endpoint_stays_down(
    receiver: Receiver,
) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.always(Close())
    policy = factories.policy(pause_seconds=1, pause_max_seconds=1)
    of = factories.subscription(endpoint=endpoint.url, policy=policy)
    head, lane = factories.delivery(subscription=of), of.subscriber.lane

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        await eventually(lambda: Lane.objects.get(pk=lane.pk).state == LaneState.BLOCKED)
        await elsewhere(lambda: unblock.skip_delivery(lane, actor="ann"))
        context.lanes[lane.pk].nudge()
        await eventually(lambda: Lane.objects.get(pk=lane.pk).state == LaneState.IDLE)
        assert await elsewhere(are_down) == [of.pk]
        endpoint.always(OK)
        await elsewhere(lambda: factories.delivery(subscription=of))
        context.lanes[lane.pk].notify()
        await eventually(lambda: are_down() == [])

    serving(scenario)
    head.refresh_from_db()
    assert head.status == Status.CANCELLED


def test_a_new_endpoint_is_not_down_and_other_changes_show_nothing() -> None:
    lane, of = queue_lane(), factories.subscription()
    commit((lane, [down(of, lane)]))
    of.status = "INACTIVE"
    of.save()
    assert are_down() == [of.pk]
    of.endpoint = "https://new.example/"
    of.save()
    assert are_down() == []


def _make_due(row: Delivery) -> None:
    Delivery.objects.filter(pk=row.pk).update(next_attempt_at=timezone.now())
