"""A row that another session has locked delays the lane that needs it, and no other."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from delivery.database.connections import connection_parameters
from delivery.models import Attempt, Delivery, Lane, LaneState, Status
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.entries import LaneChange
from tests.support import factories
from tests.unit.delivery.senders.entries import run_of, settlement
from tests.unit.delivery.senders.running import (
    elsewhere,
    end_sessions,
    serve_lanes,
    with_group_commit,
)

pytestmark = pytest.mark.django_db(transaction=True)

# Only a hang takes so long: the test holds the lock until it releases it.
SECONDS = 30


@contextmanager
def locked(table: str, id: int) -> Iterator[None]:
    """Lock a row in another session."""
    with psycopg.connect(**connection_parameters()) as other:
        found = other.execute(f"SELECT FROM {table} WHERE id = {id} FOR UPDATE".encode())
        assert found.rowcount == 1
        yield


def lane_of(row: Delivery) -> int:
    assert row.lane_id is not None
    return row.lane_id


async def started(commit: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Start a lane's commit, which may take any time."""
    task = asyncio.create_task(commit)
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("table", ["delivery_delivery", "delivery_lane"])
def test_only_the_lane_that_wants_the_row_waits(table: str) -> None:
    rows = [factories.delivery() for _ in range(6)]
    wants, *others = rows
    flows = {
        row.pk: LaneChange(lane_id=lane_of(row), state=LaneState.IDLE, ends_run=False)
        for row in rows
    }

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_of(row) for row in rows])
        with locked(table, wants.pk if table == "delivery_delivery" else lane_of(wants)):
            first = await started(
                commits.commit(lane_of(wants), settlement(wants), flows[wants.pk])
            )
            async with asyncio.timeout(SECONDS):
                await asyncio.gather(
                    *(
                        commits.commit(lane_of(row), settlement(row), flows[row.pk])
                        for row in others
                    )
                )
                for row in others:
                    await commits.commit(lane_of(row), run_of(row))
                await commits.session.members()
            assert not first.done()
            assert commits.locked_lanes == [lane_of(wants)]
        await first
        assert commits.locked_lanes == []

    with_group_commit(scenario)
    assert {row.status for row in Delivery.objects.all()} == {Status.DELIVERED}
    assert Attempt.objects.count() == len(rows)


def test_an_outcome_submitted_during_the_wait_is_committed_afterwards() -> None:
    first, second, third = rows = [
        factories.delivery(subscription=subscription)
        for subscription in [factories.subscription()] * 3
    ]
    lane_id = lane_of(first)
    last = run_of(third)

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_id])
        await commits.commit(lane_id, run_of(*rows))
        with locked("delivery_delivery", first.pk):
            handed_in = [
                await started(commits.commit(lane_id, settlement(first), run_of(second, third))),
                await started(commits.commit(lane_id, settlement(second))),
                await started(commits.commit(lane_id, last)),
            ]
            async with asyncio.timeout(SECONDS):
                while not commits.locked_lanes:
                    await commits.session.members()
            assert await elsewhere(_run, lane_id) == [row.pk for row in rows]
        await asyncio.gather(*handed_in)

    with_group_commit(scenario)
    assert _run(lane_id) == [third.pk]
    assert set(Attempt.objects.values_list("delivery_id", flat=True)) == {first.pk, second.pk}


def test_a_lane_that_waits_outlives_its_connection() -> None:
    wants, other = factories.delivery(), factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_of(wants), lane_of(other)])
        await commits.commit(lane_of(wants), run_of(wants))
        with locked("delivery_delivery", wants.pk):
            first = await started(commits.commit(lane_of(wants), settlement(wants)))
            async with asyncio.timeout(SECONDS):
                await commits.commit(lane_of(other), run_of(other))
                await elsewhere(end_sessions)
                await commits.commit(lane_of(other), settlement(other))
            assert not first.done()
        await first

    with_group_commit(scenario)
    assert set(Delivery.objects.values_list("status", "attempts")) == {(Status.DELIVERED, 1)}


def _run(lane_id: int) -> list[int]:
    return Lane.objects.get(pk=lane_id).run_ids
