"""Lanes that move between senders under load: delivered in order, once, without delay."""

import asyncio
from ipaddress import IPv4Network

import pytest

from delivery.models import Delivery, Lane
from delivery.models.shard import SHARDS, shard_of
from delivery.senders.claims import Claims
from delivery.senders.shards.sharing import owner_of
from subscriptions.models import Subscription
from tests.support import factories
from tests.support.receivers import Hold, Receiver, Slow
from tests.support.receivers.endpoint import ReceiverEndpoint
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.senders.running import claims_at_work, elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 120
MESSAGES = 40


class MovedLanes:
    """A subscription in a lane of its own, with waiting deliveries."""

    def __init__(self, receiver: Receiver, name: str, *, lane_id: int | None = None) -> None:
        self.endpoint: ReceiverEndpoint = receiver.endpoint(name)
        self.subscription: Subscription = factories.subscription(endpoint=self.endpoint.url)
        lane: Lane = self.subscription.subscriber.lane
        if lane_id is not None:
            Lane.objects.filter(pk=lane.pk).update(id=lane_id)
            self.subscription.subscriber.refresh_from_db()
        self.lane_id = lane_id or lane.pk

    def publish(self, messages: int) -> None:
        rows = [factories.delivery(subscription=self.subscription) for _ in range(messages)]
        assert {row.lane_id for row in rows} == {self.lane_id}
        self.deliveries = [row.pk for row in rows]

    def is_done(self) -> bool:
        return not Delivery.objects.pending().filter(subscription=self.subscription).exists()


@pytest.fixture
def flowing(receiver: Receiver) -> list[MovedLanes]:
    made = [MovedLanes(receiver, f"lane-{number}") for number in range(8)]
    for delivery in made:
        delivery.endpoint.always(Slow(0.01))
        delivery.publish(MESSAGES)
    return made


@pytest.fixture
def hanging(receiver: Receiver) -> MovedLanes:
    """A lane whose shard belongs to the second of two senders."""
    made = MovedLanes(receiver, "hanging")
    while owner_of(shard_of(made.lane_id), {0, 1}) != 1:
        made = MovedLanes(receiver, "hanging")
    made.publish(2)
    return made


@pytest.fixture
def neighbour(receiver: Receiver, hanging: MovedLanes) -> MovedLanes:
    """A lane in the shard of the hanging one."""
    made = MovedLanes(receiver, "neighbour", lane_id=hanging.lane_id + SHARDS)
    made.endpoint.always(Slow(0.01))
    made.publish(MESSAGES)
    return made


async def look(claims: Claims, lane_ids: list[int]) -> None:
    """Take one turn of a sender's loop."""
    await claims.update_members()
    await claims.release_left()
    await claims.serve(lane_ids)


def test_lanes_continue_when_shards_move_although_an_endpoint_hangs(
    flowing: list[MovedLanes], hanging: MovedLanes, neighbour: MovedLanes
) -> None:
    hold = Hold()
    hanging.endpoint.next(hold)
    others = [*flowing, neighbour]
    lane_ids = [made.lane_id for made in (*others, hanging)]
    networks = [IPv4Network(NETWORKS)]

    async def run() -> None:
        async with claims_at_work(networks=networks) as (first, late), asyncio.timeout(SECONDS):
            await first.serve(lane_ids)
            await elsewhere(hanging.endpoint.wait_for_count, 1)
            await elsewhere(flowing[0].endpoint.wait_for_count, 3)
            async with claims_at_work(networks=networks) as (second, other):
                first.sharing.sharing = 2
                while not all([await elsewhere(made.is_done) for made in others]):
                    await look(first, lane_ids)
                    await look(second, lane_ids)
                    await asyncio.sleep(0.02)
                assert (
                    len(set(late.session.claimed.shards)) + len(set(other.session.claimed.shards))
                    == SHARDS
                )
                assert shard_of(hanging.lane_id) in late.session.claimed.shards
                assert list(other.session.claimed.shards)
                hold.release()
                while not await elsewhere(hanging.is_done):
                    await asyncio.sleep(0.02)

    asyncio.run(run())
    for made in (*others, hanging):
        assert [request.delivery for request in made.endpoint.received] == made.deliveries
        assert {request.redelivery for request in made.endpoint.received} == {None}
