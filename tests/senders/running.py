"""Senders' parts on the test database, each coroutine run on a loop of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from django.db import connection

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
