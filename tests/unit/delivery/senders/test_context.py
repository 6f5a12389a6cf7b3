"""Lanes that begin at once share the look-ups of their endpoints; none waits for later lanes."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.context import SenderContext
from delivery.senders.http.client import HttpClient
from delivery.senders.parcel import Endpoint
from delivery.senders.read_connection import ReadConnection
from delivery.senders.shards.session import SenderSession
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60


class WatchedReadConnection(ReadConnection):
    """Notes the subscriptions of each look-up; those after the first wait for `may_continue`."""

    def __init__(self) -> None:
        super().__init__(name="inturn reader test")
        self.requested: list[list[int]] = []
        self.begun = asyncio.Event()
        self.may_continue = asyncio.Event()

    async def endpoints(self, subscription_ids: Sequence[int]) -> list[Endpoint]:
        self.requested.append(sorted(subscription_ids))
        self.begun.set()
        if len(self.requested) > 1:
            await self.may_continue.wait()
        return await super().endpoints(subscription_ids)


def test_lanes_share_a_look_up_and_do_not_wait_for_the_next() -> None:
    first, second, third = (factories.subscription().pk for _ in range(3))

    async def scenario(context: SenderContext, reader: WatchedReadConnection) -> None:
        early = [asyncio.create_task(context.load([id])) for id in (first, second)]
        await reader.begun.wait()
        late = asyncio.create_task(context.load([third]))
        await asyncio.gather(*early)
        assert context.endpoints.keys() == {first, second}
        assert not late.done()
        reader.may_continue.set()
        await late
        assert context.endpoints.keys() == {first, second, third}
        assert reader.requested == [[first, second], [third]]

    with_context(scenario)


def test_a_lane_that_is_cancelled_does_not_end_the_look_up_of_others() -> None:
    first, second = (factories.subscription().pk for _ in range(2))

    async def scenario(context: SenderContext, reader: WatchedReadConnection) -> None:
        cancelled, other = (asyncio.create_task(context.load([id])) for id in (first, second))
        await reader.begun.wait()
        cancelled.cancel()
        await other
        assert cancelled.cancelled()
        assert context.endpoints.keys() == {first, second}

    with_context(scenario)


def test_a_deleted_subscription_is_looked_up_once() -> None:
    async def scenario(context: SenderContext, reader: WatchedReadConnection) -> None:
        await context.load([0])
        assert reader.requested == [[0]]
        assert not context.endpoints

    with_context(scenario)


def with_context(
    scenario: Callable[[SenderContext, WatchedReadConnection], Coroutine[Any, Any, None]],
) -> None:
    """Run the scenario with the context of a sender that only reads."""

    async def run() -> None:
        reader = WatchedReadConnection()
        try:
            async with asyncio.timeout(SECONDS), HttpClient(allowed_networks=()) as client:
                context = SenderContext(
                    group_commit=GroupCommit(SenderSession()), read_connection=reader, client=client
                )
                await scenario(context, reader)
        finally:
            await reader.close()

    asyncio.run(run())
