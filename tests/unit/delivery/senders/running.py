"""Senders' parts on the test database, each coroutine run on a loop of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Network
from typing import Any

from django.db import connection

from delivery.models.shard import shard_of
from delivery.senders.claims import Claims
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.context import SenderContext
from delivery.senders.http.client import HttpClient
from delivery.senders.read_connection import ReadConnection
from delivery.senders.sender import Sender
from delivery.senders.shards.session import SenderSession

Scenario = Callable[[GroupCommit], Coroutine[Any, Any, None]]


async def elsewhere(act: Callable[..., Any], *args: Any) -> Any:
    """Use Django's database from a coroutine: in a thread, whose connection is closed after it."""

    def acting() -> Any:
        try:
            return act(*args)
        finally:
            connection.close()

    return await asyncio.to_thread(acting)


async def serve_lanes(commits: GroupCommit, lane_ids: Sequence[int]) -> None:
    """Claim these lanes on the session, as a sender does that begins to serve them."""
    session = commits.session
    unclaimed = {shard_of(lane_id) for lane_id in lane_ids}
    while unclaimed:
        # The server may still be ending the session of an earlier scenario, which had the locks.
        unclaimed -= await session.claim(list(unclaimed))
    for lane_id in lane_ids:
        epoch = session.claimed.epoch_of(lane_id)
        assert epoch is not None
        session.claimed.begin(lane_id, epoch=epoch)


def end_sessions() -> None:
    """End the sessions of all senders."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'inturn sender %'"
        )


@asynccontextmanager
async def group_commit_at_work() -> AsyncIterator[GroupCommit]:
    """Yield the group commit of a sender that is connected."""
    session = SenderSession()
    assert await session.connect()
    # Its connection has its name by then.
    await session.members()
    commits = GroupCommit(session)
    works = [asyncio.create_task(work) for work in (session.send_heartbeats(), commits.run())]
    try:
        yield commits
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        await session.close()


@asynccontextmanager
async def sender_at_work() -> AsyncIterator[tuple[Sender, SenderContext]]:
    """Yield the second sender of this machine while it serves, and stop it in order."""
    stopping = asyncio.Event()
    sender = Sender(must_stop=stopping.is_set, number=1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sender.serve())
        while sender.context is None:
            await asyncio.sleep(0)
        yield sender, sender.context
        stopping.set()


@asynccontextmanager
async def claims_at_work(
    *, networks: Sequence[IPv4Network] = ()
) -> AsyncIterator[tuple[Claims, SenderContext]]:
    """Yield the claims of a sender that has read the other senders once; close them on leaving."""
    reader = ReadConnection(name="inturn reader test")
    answering = asyncio.create_task(reader.run())
    try:
        async with (
            group_commit_at_work() as commits,
            HttpClient(allowed_networks=networks) as client,
            asyncio.TaskGroup() as tasks,
        ):
            context = SenderContext(group_commit=commits, read_connection=reader, client=client)
            claims = Claims(context, tasks)
            await claims.update_members()
            yield claims, context
            claims.close()
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        await reader.close()


def with_group_commit(scenario: Scenario) -> None:
    """Run the scenario with a running group commit."""

    async def run() -> None:
        async with group_commit_at_work() as commits:
            await scenario(commits)

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
