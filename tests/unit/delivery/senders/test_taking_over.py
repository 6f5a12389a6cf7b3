"""A sender that claims shards looks into them at once, not at its next poll."""

import asyncio

import pytest

from delivery.models.shard import SHARDS
from delivery.senders import sender
from delivery.senders.commits.settler import Settler
from delivery.senders.context import SenderContext
from delivery.senders.sender import Sender
from tests.support import factories
from tests.support.receivers import Receiver
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60


def test_the_lanes_of_a_sender_that_ended_are_served_before_the_next_poll(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "POLL_SECONDS", float("inf"))
    endpoint = receiver.endpoint("a")
    factories.delivery(subscription=factories.subscription(endpoint=endpoint.url))
    stopping = asyncio.Event()
    heir = Sender(must_stop=stopping.is_set, number=1)

    async def scenario() -> None:
        other = Settler()
        assert await other.connect()
        await other.members()
        assert len(await other.claim(list(range(SHARDS)))) == SHARDS
        await heir._connect()
        serving = asyncio.create_task(serve(heir))
        async with asyncio.timeout(SECONDS):
            while heir._poll_due_at != float("inf"):
                await asyncio.sleep(0)
        assert not list(heir._settler.claimed.shards)
        # Without shards there is nothing to read.
        assert heir._reader.connected == 0
        await other.close()
        await elsewhere(endpoint.wait_for_count, 1)
        stopping.set()
        await serving

    asyncio.run(scenario())


async def serve(heir: Sender) -> None:
    """Serve as `Sender.run` does, without its settings of the whole process."""
    try:
        async with sender._http_client() as client:
            await heir._work(
                SenderContext(settler=heir._settler, reader=heir._reader, client=client)
            )
    finally:
        await heir._reader.close()
        await heir._settler.close()
