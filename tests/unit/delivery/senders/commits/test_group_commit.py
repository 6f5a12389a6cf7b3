"""Committing outcomes: exactly once, only with the lock, through lost connections."""

import asyncio
from datetime import datetime

import psycopg
import pytest
from django.db import connection

from delivery.database.connections import connection_parameters
from delivery.lifecycle import transitions
from delivery.models import (
    Attempt,
    JournalEntry,
    JournalKind,
    Lane,
    LaneState,
    OutcomeClass,
    Status,
)
from delivery.models.shard import shard_of
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.entries import LaneChange
from delivery.senders.shards.claimed_shards import LaneLostError
from delivery.senders.shards.session import SenderSession
from delivery.verdict import NextStep, Verdict
from tests.support import factories
from tests.unit.delivery.senders.entries import run_of, settlement
from tests.unit.delivery.senders.running import (
    elsewhere,
    end_sessions,
    serve_lanes,
    with_group_commit,
)

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60
SKIPPED = Verdict(status=Status.PENDING, step=NextStep.SKIP)


def test_an_outcome_settles_the_delivery_and_is_kept_as_an_attempt() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        await commits.commit(row.lane_id or 0, settlement(row))

    with_group_commit(scenario)
    row.refresh_from_db()
    assert (row.status, row.attempts, row.reason) == (Status.DELIVERED, 1, "200")
    attempt = Attempt.objects.get()
    assert (attempt.number, attempt.outcome, attempt.status_code) == (1, OutcomeClass.SUCCESS, 200)


def test_committing_an_outcome_twice_changes_nothing() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        again = settlement(row)
        await commits.commit(row.lane_id or 0, again)
        await commits.commit(row.lane_id or 0, again)

    with_group_commit(scenario)
    assert Attempt.objects.count() == 1


def test_a_skipped_one_stays_pending_and_is_marked() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        entry = settlement(row, verdict=SKIPPED, outcome=OutcomeClass.SERVER_ERROR, status_code=500)
        await commits.commit(row.lane_id or 0, entry)

    with_group_commit(scenario)
    row.refresh_from_db()
    assert (row.status, row.skipped, row.settled_at) == (Status.PENDING, True, None)


def test_a_delivery_cancelled_while_it_was_sent_stays_cancelled_and_has_its_attempt() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        entry = settlement(row)
        await elsewhere(_cancel, row.pk)
        await commits.commit(row.lane_id or 0, entry)

    with_group_commit(scenario)
    row.refresh_from_db()
    assert (row.status, row.attempts) == (Status.CANCELLED, 1)
    assert Attempt.objects.get().outcome == OutcomeClass.SUCCESS


def _cancel(delivery_id: int) -> None:
    transitions.cancel_deliveries([delivery_id], actor="ann")


def test_no_answer_prevents_its_outcome_from_being_stored() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        entry = settlement(
            row, error="bad \0 and \udc80", excerpt=bytes(range(256)), status_code=999
        )
        await commits.commit(row.lane_id or 0, entry)

    with_group_commit(scenario)
    attempt = Attempt.objects.get()
    assert bytes(attempt.excerpt) == bytes(range(256))
    assert attempt.error.startswith("bad \N{REPLACEMENT CHARACTER} and")


def test_a_lane_is_served_by_one_sender_at_a_time() -> None:
    lane_id = factories.subscriber().lane.pk
    shard = shard_of(lane_id)

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_id])
        other = SenderSession()
        assert await other.connect()
        assert await other.claim([shard]) == set()
        with pytest.raises(LaneLostError):
            other.claimed.begin(lane_id, epoch=1)
        commits.session.claimed.end(lane_id)
        await commits.session.release([shard])
        assert await other.claim([shard]) == {shard}
        await other.close()

    with_group_commit(scenario)


def test_without_the_lock_nothing_is_committed() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        with pytest.raises(LaneLostError):
            await commits.commit(row.lane_id or 0, settlement(row))

    with_group_commit(scenario)
    assert not Attempt.objects.exists()


def test_a_lane_is_lost_when_its_shard_is_released() -> None:
    row = factories.delivery()
    lane_id = row.lane_id or 0

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_id])
        await commits.session.release([shard_of(lane_id)])
        assert not commits.session.claimed.may_send(lane_id)
        with pytest.raises(LaneLostError):
            await commits.commit(lane_id, settlement(row))

    with_group_commit(scenario)
    assert not Attempt.objects.exists()


def test_after_a_lost_connection_an_untouched_lane_continues_and_commits() -> None:
    row = factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        await commits.commit(row.lane_id or 0, run_of(row))
        await elsewhere(end_sessions)
        await commits.commit(row.lane_id or 0, settlement(row))

    with_group_commit(scenario)
    row.refresh_from_db()
    assert (row.status, row.attempts) == (Status.DELIVERED, 1)


def test_lanes_of_a_shard_taken_by_another_sender_are_lost() -> None:
    """Even if the other sender left nothing: it may have sent the same deliveries."""
    row, other = factories.delivery(), factories.delivery()

    async def scenario(commits: GroupCommit) -> None:
        lane_id = row.lane_id or 0
        await serve_lanes(commits, [lane_id, other.lane_id or 0])
        await commits.commit(lane_id, run_of(row))
        usurper = SenderSession()
        assert await usurper.connect()
        # As after a long interruption: it does not reconnect before another has claimed its shard.
        usurping = asyncio.create_task(_take(usurper, shard_of(lane_id)))
        async with asyncio.timeout(SECONDS):
            while not usurping.done():
                await elsewhere(end_sessions)
                await asyncio.sleep(0)
        await usurper.close()
        with pytest.raises(LaneLostError):
            await commits.commit(lane_id, settlement(row))
        assert not commits.session.claimed.may_send(lane_id)
        await commits.commit(other.lane_id or 0, settlement(other))

    with_group_commit(scenario)
    assert [attempt.delivery_id for attempt in Attempt.objects.all()] == [other.pk]


def test_after_a_reconnect_nothing_is_sent_before_the_shards_are_claimed() -> None:
    row = factories.delivery()
    lane_id = row.lane_id or 0

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_id])
        assert commits.session.claimed.may_send(lane_id)
        with psycopg.connect(**connection_parameters()) as holder:
            # The sender connects again, locks its shards, and waits to claim them.
            holder.execute(
                "SELECT FROM delivery_shard WHERE id = %s FOR UPDATE", [shard_of(lane_id)]
            )
            await elsewhere(end_sessions)
            committing = asyncio.create_task(commits.commit(lane_id, settlement(row)))
            async with asyncio.timeout(SECONDS):
                while not await elsewhere(_is_waited_for, holder.info.backend_pid):
                    continue
            assert not commits.session.claimed.may_send(lane_id)
        await committing
        assert commits.session.claimed.may_send(lane_id)

    with_group_commit(scenario)


def _is_waited_for(backend: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
            [backend],
        )
        return bool(cursor.fetchone() == (1,))


async def _take(session: SenderSession, shard: int) -> None:
    while not await session.claim([shard]):
        continue
    await session.release([shard])


def test_an_unstorable_entry_does_not_affect_the_outcomes_of_other_lanes() -> None:
    good, bad = factories.delivery(), factories.delivery()
    unknown = Verdict(status=Status.IN_FLIGHT, step=NextStep.NEXT)

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [good.lane_id or 0, bad.lane_id or 0])
        results = await asyncio.gather(
            commits.commit(bad.lane_id or 0, settlement(bad, verdict=unknown)),
            commits.commit(good.lane_id or 0, settlement(good)),
            return_exceptions=True,
        )
        assert isinstance(results[0], psycopg.IntegrityError)
        assert results[1] is None

    with_group_commit(scenario)
    assert list(Attempt.objects.values_list("delivery_id", flat=True)) == [good.pk]


def test_lane_and_journal_report_a_block_once() -> None:
    row = factories.delivery()
    lane_id = row.lane_id or 0

    def blocked(failures: int) -> LaneChange:
        return LaneChange(
            lane_id=lane_id,
            state=LaneState.BLOCKED,
            reason="timed out",
            delivery_id=row.pk,
            failures=failures,
            wait_seconds=60.0,
        )

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [lane_id])
        await commits.commit(lane_id, run_of(row), blocked(1))
        since = await elsewhere(_since, lane_id)
        await commits.commit(lane_id, blocked(2))
        assert await elsewhere(_since, lane_id) == since
        assert await elsewhere(_seconds_to_next_try, lane_id) == pytest.approx(60, abs=10)
        await commits.commit(lane_id, LaneChange(lane_id=lane_id, state=LaneState.IDLE))

    with_group_commit(scenario)
    lane = Lane.objects.get(pk=lane_id)
    assert (lane.state, lane.failures, lane.delivery_id, lane.run_ids) == (
        LaneState.IDLE,
        0,
        None,
        [],
    )
    assert lane.next_try_at is None
    kinds = list(JournalEntry.objects.order_by("id").values_list("kind", flat=True))
    assert kinds == [JournalKind.BLOCKED, JournalKind.RESUMED]


def _seconds_to_next_try(lane_id: int) -> float:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM next_try_at - now()) FROM delivery_lane WHERE id = %s",
            [lane_id],
        )
        (seconds,) = cursor.fetchone() or (0,)
    return float(seconds)


def _since(lane_id: int) -> datetime:
    return Lane.objects.get(pk=lane_id).since
