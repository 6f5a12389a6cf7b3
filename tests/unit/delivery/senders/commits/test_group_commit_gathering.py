"""Outcomes for which nothing of their lane waits are committed together."""

import asyncio

import pytest
from django.db import connection

from delivery.models import Delivery, Status
from delivery.senders.commits import group_commit
from delivery.senders.commits.group_commit import GroupCommit
from tests.support import factories
from tests.unit.delivery.senders.entries import settlement
from tests.unit.delivery.senders.running import serve_lanes, with_group_commit

pytestmark = pytest.mark.django_db(transaction=True)


def test_outcomes_for_which_nothing_waits_share_a_commit() -> None:
    rows = [factories.delivery() for _ in range(3)]

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0 for row in rows])
        async with asyncio.TaskGroup() as tasks:
            for row in rows:
                tasks.create_task(
                    commits.commit(row.lane_id or 0, settlement(row), is_urgent=False)
                )
                # One turn of the event loop for each: they arrive one after the other.
                await asyncio.sleep(0)

    with_group_commit(scenario)
    assert transactions_of_settled() == 1


def test_an_urgent_outcome_is_committed_with_those_that_wait() -> None:
    rows = [factories.delivery() for _ in range(2)]

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0 for row in rows])
        waiting = asyncio.create_task(
            commits.commit(rows[0].lane_id or 0, settlement(rows[0]), is_urgent=False)
        )
        await asyncio.sleep(0)
        await commits.commit(rows[1].lane_id or 0, settlement(rows[1]))
        assert waiting.done()

    with_group_commit(scenario)
    assert transactions_of_settled() == 1


def test_more_groups_than_a_commit_takes_are_committed_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_commit, "MOST_TOGETHER", 2)
    rows = [factories.delivery() for _ in range(5)]

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0 for row in rows])
        await asyncio.gather(
            *(commits.commit(row.lane_id or 0, settlement(row), is_urgent=False) for row in rows)
        )

    with_group_commit(scenario)
    assert Delivery.objects.filter(status=Status.DELIVERED).count() == 5
    assert transactions_of_settled() == 3


def transactions_of_settled() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT xmin::text) FROM delivery_settled")
        ((count,),) = cursor.fetchall()
    return int(count)
