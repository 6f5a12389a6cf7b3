"""An ordered lane goes idle without a second read; whatever commits meanwhile notifies it."""

import asyncio
from ipaddress import ip_network

import pytest

from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.senders.lanes.lane import SenderLane
from subscriptions.models import Subscription
from tests.races.transactions import unfinished
from tests.support import factories
from tests.support.receivers import Hold, Receiver, ReceiverEndpoint
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60


@pytest.fixture
def endpoint(receiver: Receiver) -> ReceiverEndpoint:
    return receiver.endpoint("a")


@pytest.fixture
def subscription(endpoint: ReceiverEndpoint) -> Subscription:
    return factories.subscription(endpoint=endpoint.url)


async def until_idle(lane: SenderLane) -> None:
    async with asyncio.timeout(SECONDS):
        while lane.is_busy or lane.stock.more:
            await asyncio.sleep(0)


def test_a_message_that_commits_after_the_read_is_sent_when_the_lane_is_notified(
    endpoint: ReceiverEndpoint, subscription: Subscription
) -> None:
    """Although the id is lower than the read message's."""
    lane_id = subscription.subscriber.lane.pk

    async def scenario(claims: Claims, context: SenderContext) -> None:
        with unfinished(lambda: factories.delivery(subscription=subscription)):
            await elsewhere(lambda: factories.delivery(subscription=subscription))
            await claims.serve([lane_id])
            await elsewhere(endpoint.wait_for_count, 1)
            lane = context.lanes[lane_id]
            await until_idle(lane)
        # It was committed, and the lane has not read since.
        assert len(endpoint.received) == 1
        lane.notify()
        await elsewhere(endpoint.wait_for_count, 2)

    with_claims(scenario, networks=[ip_network(NETWORKS)])  # type: ignore[list-item]


def test_a_notification_during_the_last_attempt_makes_the_lane_read_again(
    endpoint: ReceiverEndpoint, subscription: Subscription
) -> None:
    lane_id = subscription.subscriber.lane.pk
    hold = Hold()
    endpoint.next(hold)
    factories.delivery(subscription=subscription)

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane_id])
        await elsewhere(endpoint.wait_for_count, 1)
        await elsewhere(lambda: factories.delivery(subscription=subscription))
        context.lanes[lane_id].notify()
        hold.release()
        await elsewhere(endpoint.wait_for_count, 2)
        await until_idle(context.lanes[lane_id])

    with_claims(scenario, networks=[ip_network(NETWORKS)])  # type: ignore[list-item]
