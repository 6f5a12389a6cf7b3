"""Once a sender has read a hold no attempt begins, though it had read the deliveries before."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from delivery.models import Delivery, Status
from delivery.senders.context import SenderContext
from subscriptions.models import Processing, Subscription
from tests.support import factories
from tests.support.receivers import Hold, Receiver, ReceiverEndpoint
from tests.unit.delivery.api.client import Caller, caller
from tests.unit.delivery.senders.running import elsewhere, sender_at_work

pytestmark = pytest.mark.django_db(transaction=True)

# Only a hang takes so long.
SECONDS = 60
COUNT = 40


def held_by(of: Subscription) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the calls that hold what a subscription gets."""
    return {
        "subscription": (f"subscriptions/{of.pk}", {"status": "HELD"}),
        "subscriber": (f"subscribers/{of.subscriber.name}", {"status": "HELD"}),
        "all sending": ("installation", {"sending": "HELD"}),
    }


def subscribed(endpoint: ReceiverEndpoint, in_flight: int) -> Subscription:
    """Return a subscription with waiting deliveries, of which so many are sent at a time."""
    wants: dict[str, Any] = {}
    if in_flight > 1:
        wants = {"processing": Processing.CONCURRENT, "max_in_flight": in_flight}
    subscription = factories.subscription(
        subscriber=factories.subscriber(**wants), endpoint=endpoint.url
    )
    for _ in range(COUNT):
        factories.delivery(subscription=subscription)
    return subscription


@pytest.mark.parametrize("by", ["subscription", "subscriber", "all sending"])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_only_the_attempts_begun_before_are_made(
    receiver: Receiver, by: str, in_flight: int
) -> None:
    endpoint, under_way = receiver.endpoint("a"), Hold()
    endpoint.always(under_way)
    subscription, manager = subscribed(endpoint, in_flight), caller()
    path, held = held_by(subscription)[by]

    async def scenario(context: SenderContext) -> None:
        await elsewhere(endpoint.wait_for_count, in_flight)
        (lane,) = context.lanes.values()
        assert (await elsewhere(manager.patch, path, held)).status == 200
        while not context.is_held and context.endpoints[subscription.pk].is_active:
            await asyncio.sleep(0)
        under_way.release()
        while lane.is_sending:
            await asyncio.sleep(0)
        # An attempt counts here before it is answered, so before it ends.
        assert len(endpoint.received) == in_flight
        await elsewhere(release, manager, path)
        await elsewhere(endpoint.wait_for_count, COUNT)

    asyncio.run(served(scenario))
    sent = [request.delivery for request in endpoint.received]
    assert sorted(sent) == sorted(Delivery.objects.values_list("pk", flat=True))
    if in_flight == 1:
        assert sent == sorted(sent)
    assert set(Delivery.objects.values_list("status", flat=True)) == {Status.DELIVERED}


def release(manager: Caller, path: str) -> None:
    name = "sending" if path == "installation" else "status"
    assert manager.patch(path, {name: "ACTIVE"}).status == 200


async def served(scenario: Callable[[SenderContext], Awaitable[None]]) -> None:
    """Run the scenario beside a sender."""
    async with sender_at_work() as (_, context), asyncio.timeout(SECONDS):
        await scenario(context)
