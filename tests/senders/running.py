"""Senders' parts on the test database, each coroutine run on a loop of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from ipaddress import IPv4Network
from typing import Any

from django.db import connection

from delivery.senders.desk import Desk
from delivery.senders.http import Client
from delivery.senders.lanes import Claims
from delivery.senders.read import Reader
from delivery.senders.settle import Settler
from delivery.senders.stint import slot_key

Scenario = Callable[[Settler], Coroutine[Any, Any, None]]


async def elsewhere(act: Callable[..., Any], *args: Any) -> Any:
    """Use Django's database from a coroutine: in a thread, whose connection is closed after it."""

    def acting() -> Any:
        try:
            return act(*args)
        finally:
            connection.close()

    return await asyncio.to_thread(acting)


def with_settler(scenario: Scenario, *, name: str = "inturn sender test") -> None:
    """Run the scenario with a settler that is connected and committing."""

    async def run() -> None:
        settler = Settler(name=name)
        assert await settler.take_slot([slot_key("test", 0), slot_key("test", 1), slot_key("test", 2)])
        committing = asyncio.create_task(settler.run())
        try:
            await scenario(settler)
        finally:
            committing.cancel()
            await asyncio.gather(committing, return_exceptions=True)
            await settler.close()

    asyncio.run(run())


def with_claims(
    scenario: Callable[[Claims, Desk], Awaitable[None]], *, networks: Sequence[IPv4Network] = ()
) -> None:
    """Run the scenario with the claims of a sender that is alone; they are closed after it."""

    async def run(settler: Settler) -> None:
        reader = Reader(name="inturn reader test")
        answering = asyncio.create_task(reader.run())
        try:
            async with Client(allowed_networks=networks) as client, asyncio.TaskGroup() as tasks:
                desk = Desk(settler=settler, reader=reader, client=client)
                claims = Claims(desk, tasks)
                await claims.meet()
                await scenario(claims, desk)
                claims.close()
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            await reader.close()

    with_settler(run)
