"""A sender that claims shards looks into them at once, not at its next poll."""

import asyncio

import pytest

from delivery.models.shard import SHARDS
from delivery.senders import sender
from delivery.senders.shards.session import SenderSession
from tests.support import factories
from tests.support.receivers import Receiver
from tests.unit.delivery.senders.running import elsewhere, sender_at_work

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60


def test_the_lanes_of_a_sender_that_ended_are_served_before_the_next_poll(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "POLL_SECONDS", float("inf"))
    endpoint = receiver.endpoint("a")
    factories.delivery(subscription=factories.subscription(endpoint=endpoint.url))

    async def scenario() -> None:
        other = SenderSession()
        assert await other.connect()
        await other.members()
        assert len(await other.claim(list(range(SHARDS)))) == SHARDS
        async with sender_at_work() as (heir, context), asyncio.timeout(SECONDS):
            while heir.poll_due_at != float("inf"):
                await asyncio.sleep(0)
            assert not list(context.session.claimed.shards)
            # Without shards there is nothing to read.
            assert context.read_connection.connected == 0
            await other.close()
            await elsewhere(endpoint.wait_for_count, 1)

    asyncio.run(scenario())
