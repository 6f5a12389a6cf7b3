"""The recorded run of a lane when several are committed, and the error for the others."""

import asyncio
from dataclasses import replace

import pytest

from delivery.models import Attempt, Lane
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.entries import Run
from delivery.senders.shards.claimed_shards import LaneLostError
from tests.support import factories
from tests.unit.delivery.senders.entries import run_of, settlement
from tests.unit.delivery.senders.running import serve_lanes, with_group_commit

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_two_runs_of_a_lane_the_later_is_recorded() -> None:
    first, second = (factories.delivery() for _ in range(2))
    lane_id = first.lane_id or 0

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_id])
        await asyncio.gather(
            commits.commit(lane_id, run_of(first)),
            commits.commit(lane_id, replace(run_of(first), ids=(second.pk,))),
        )

    with_group_commit(scenario)
    assert Lane.objects.get(pk=lane_id).run_ids == [second.pk]


def test_a_cancelled_run_is_not_recorded() -> None:
    row = factories.delivery()
    lane_id = row.lane_id or 0

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_id])
        # Behind another commit, so that it is still waiting when it is cancelled.
        under_way = asyncio.create_task(
            commits.commit(lane_id, Run(lane_id=lane_id, ids=(), attempts=()))
        )
        await asyncio.sleep(0)
        given_up = asyncio.create_task(commits.commit(lane_id, run_of(row)))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(under_way, given_up, return_exceptions=True)
        await commits.commit(lane_id)

    with_group_commit(scenario)
    assert Lane.objects.get(pk=lane_id).run_ids == []


def test_a_lane_that_commits_alone_learns_that_it_was_lost() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        await commits.commit(row.lane_id or 0, settlement(row))
        commits.session.claimed.end(row.lane_id or 0)
        with pytest.raises(LaneLostError):
            await commits.commit(row.lane_id or 0, settlement(row))

    with_group_commit(scenario)
    assert Attempt.objects.count() == 1
