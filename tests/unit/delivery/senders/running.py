"""Senders' parts on the test database, each coroutine run on a loop of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Network
from typing import Any

from django.db import connection

from delivery.models.shard import shard_of
from delivery.senders.claims import Claims
from delivery.senders.commits.settler import Settler
from delivery.senders.context import SenderContext
from delivery.senders.http.client import HttpClient
from delivery.senders.reader import Reader

Scenario = Callable[[Settler], Coroutine[Any, Any, None]]


async def elsewhere(act: Callable[..., Any], *args: Any) -> Any:
    """Use Django's database from a coroutine: in a thread, whose connection is closed after it."""

    def acting() -> Any:
        try:
            return act(*args)
        finally:
            connection.close()

    return await asyncio.to_thread(acting)


async def serve_lanes(settler: Settler, lane_ids: Sequence[int]) -> None:
    """Claim these lanes for the settler, as a sender does that begins to serve them."""
    await settler.claim(list({shard_of(lane_id) for lane_id in lane_ids}))
    for lane_id in lane_ids:
        epoch = settler.claimed.epoch_of(lane_id)
        assert epoch is not None
        settler.claimed.begin(lane_id, epoch=epoch)


def end_sessions() -> None:
    """End the sessions of all senders' settlers."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'inturn sender %'"
        )


@asynccontextmanager
async def settler_at_work() -> AsyncIterator[Settler]:
    """Yield a settler that is connected and committing."""
    settler = Settler()
    assert await settler.connect()
    # Its connection has its name by then.
    await settler.members()
    committing = asyncio.create_task(settler.run())
    try:
        yield settler
    finally:
        committing.cancel()
        await asyncio.gather(committing, return_exceptions=True)
        await settler.close()


@asynccontextmanager
async def claims_at_work(
    *, networks: Sequence[IPv4Network] = ()
) -> AsyncIterator[tuple[Claims, SenderContext]]:
    """Yield the claims of a sender that has read the other senders once; close them on leaving."""
    reader = Reader(name="inturn reader test")
    answering = asyncio.create_task(reader.run())
    try:
        async with (
            settler_at_work() as settler,
            HttpClient(allowed_networks=networks) as client,
            asyncio.TaskGroup() as tasks,
        ):
            context = SenderContext(settler=settler, reader=reader, client=client)
            claims = Claims(context, tasks)
            await claims.update_members()
            yield claims, context
            claims.close()
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        await reader.close()


def with_settler(scenario: Scenario) -> None:
    """Run the scenario with a running settler."""

    async def run() -> None:
        async with settler_at_work() as settler:
            await scenario(settler)

    asyncio.run(run())


def with_claims(
    scenario: Callable[[Claims, SenderContext], Awaitable[None]],
    *,
    networks: Sequence[IPv4Network] = (),
) -> None:
    """Run the scenario with the claims of the only sender."""

    async def run() -> None:
        async with claims_at_work(networks=networks) as (claims, context):
            await scenario(claims, context)

    asyncio.run(run())
