"""Serving one TOPIC lane: read a run, send one, commit its outcome, then the next.

The windows in which a sender may die, and what the successor finds:

    read ─▶ record the run ─▶ send ─▶ answer ─▶ commit ─▶ send the next …
         1                 2       3         4         5

1. The run is not recorded: nothing was sent. 2–4. The first unsettled delivery of
the run is in doubt (at 2 it was not sent, which nobody can know); the policy says
whether it is sent again. 5. Like 2, for the next one. Within a run a delivery is sent once: a
block ends the run, and the next try records a new one.

What has a time to live is not begun to be sent once that is over, and then its run, which named it before, is
forgotten. So what a recorded run names is left alone by `delivery.expiry`, and what none names will not be
sent.
"""

import asyncio
import logging
import time
from dataclasses import replace
from datetime import UTC, datetime

from delivery.outcome import unsendable
from delivery.senders.blocking import STOPPING, Tally, judge_run, stop, stop_without_trying
from delivery.senders.desk import Desk
from delivery.senders.entries import LaneChange, Settlement, settle
from delivery.senders.holding import LaneLostError
from delivery.senders.parcel import Parcel
from delivery.senders.read import Wish
from delivery.senders.suspending import stay_suspended
from delivery.senders.topic_lane import TopicLane, wait_for
from delivery.states import LaneState, Status
from delivery.verdict import Step, judge

log = logging.getLogger(__name__)

# How long an idle lane is kept in memory in case more comes.
LINGER_SECONDS = 5.0
# A lane that failed reads little: most of it would only be read again.
ROWS_AFTER_FAILURE = 16
# A run of so many stays recorded when all of it is settled: to empty it costs a commit.
SHORT_RUN = 8


async def serve(lane: TopicLane, desk: Desk) -> None:
    """Serve the lane until it has been idle for a while, is asked to yield, or is lost."""
    try:
        await _serve(lane, desk)
    except LaneLostError:
        log.warning("lane lost", extra={"lane": lane.id})
    finally:
        lane.stop_reading_on()


async def _serve(lane: TopicLane, desk: Desk) -> None:
    while not lane.is_yielding:
        if lane.is_suspended:
            await stay_suspended(lane, desk)
            continue
        if lane.paused_until is not None:
            await _pause(lane)
            continue
        tally = await _read_run(lane, desk)
        if tally is None:
            if not await _linger(lane, desk):
                return
            continue
        await _send_run(lane, desk, tally)
    await _end_run(lane, desk)


async def _read_run(lane: TopicLane, desk: Desk) -> Tally | None:
    """Read and record the next run, unless that was done ahead; None when there is nothing to send now."""
    if lane.refill is not None:
        await lane.refill
    if ahead := lane.take_next_run():
        return Tally(ahead)
    lane.news.clear()
    lane.nudge.clear()
    parcels = await desk.reader.parcels(_wish(lane, desk))
    if not parcels:
        return None
    await desk.know(parcel.subscription_id for parcel in parcels)
    lane.queue.extend(parcels)
    lane.has_more = len(parcels) >= _rows(lane, desk)
    lane.recorded = len(parcels)
    await desk.settler.commit(lane.id, lane.run())
    return Tally(parcels)


def _rows(lane: TopicLane, desk: Desk) -> int:
    """How many deliveries the lane may read at a time."""
    rows = min(lane.capacity, desk.rows_of_a_lane())
    return min(rows, ROWS_AFTER_FAILURE) if lane.failures else rows


def _wish(lane: TopicLane, desk: Desk) -> Wish:
    rows = _rows(lane, desk)
    return Wish(
        lane_id=lane.id,
        rows=rows,
        # Old failures take at most half of a run, and none of it while they pause.
        skipped_rows=max(rows // 2, 1) if time.monotonic() >= lane.skipped_due else 0,
        max_bytes=desk.bytes_of_a_lane(),
    )


async def _send_run(lane: TopicLane, desk: Desk, tally: Tally) -> None:
    while lane.queue and not lane.is_yielding:
        # It stays in the queue, and so in every run that is recorded, until it is settled.
        parcel = lane.queue[0]
        endpoint = desk.endpoints[parcel.subscription_id]
        is_doubtful = not endpoint.is_active or endpoint.is_disabled
        if is_doubtful and not await desk.may_send(parcel.subscription_id):
            await _set_aside(lane, desk, parcel.subscription_id)
            continue
        # Last before it is sent: the database may have been waited for.
        if lane.nudge.is_set() or desk.is_overdue(parcel):
            await _forget_run(lane, desk)
            return
        if endpoint.fault and not parcel.is_volatile:
            await stop_without_trying(lane, desk, parcel)
            return
        _refill(lane, desk, tally)
        if await _send(lane, desk, parcel, tally) in STOPPING:
            return
        lane.queue.popleft()
    if not lane.queue:
        await judge_run(lane, desk, tally)


async def _forget_run(lane: TopicLane, desk: Desk) -> None:
    """Something changed, a person cancelled some of the run, or it is too late for one: what is left is read again."""
    lane.forget_runs()
    await desk.settler.commit(lane.id, lane.run())


async def _send(lane: TopicLane, desk: Desk, parcel: Parcel, tally: Tally) -> Step:
    """Make one attempt and commit what it led to."""
    endpoint = desk.endpoints[parcel.subscription_id]
    if endpoint.fault:
        outcome = unsendable(endpoint.fault, now=datetime.now(UTC))
    else:
        outcome = await lane.sending(desk.send(lane.id, parcel, request=lane.request))
    verdict = judge(outcome, endpoint.rules, parcel.tries)
    settlement = settle(parcel, endpoint, lane_id=lane.id, verdict=verdict, outcome=outcome)
    settlement = desk.successes.see(settlement, endpoint)
    if verdict.step in STOPPING:
        await stop(lane, desk, settlement, endpoint)
        return verdict.step
    await _record(lane, desk, settlement)
    await desk.see_circuit(settlement)
    tally.count(parcel, settlement, endpoint.rules)
    return verdict.step


async def _record(lane: TopicLane, desk: Desk, settlement: Settlement) -> None:
    if settlement.verdict.status is Status.DELIVERED:
        lane.is_on_trial = False
    if (lane.failures or lane.is_blocked) and settlement.verdict.step is not Step.SKIP:
        lane.failures = 0
        await desk.settler.commit(lane.id, settlement, _flows(lane, ends_run=False))
        return
    if len(lane.queue) > 1:
        # It runs while the commit is waited for, which takes longer.
        asyncio.get_running_loop().call_soon(_make_ahead, lane, desk, lane.queue[1])
    await desk.settler.commit_uncancelled(lane.id, settlement)


def _flows(lane: TopicLane, *, ends_run: bool) -> LaneChange:
    lane.is_blocked = False
    return LaneChange(lane_id=lane.id, state=LaneState.IDLE, ends_run=ends_run)


def _make_ahead(lane: TopicLane, desk: Desk, parcel: Parcel) -> None:
    lane.request = desk.make_request(parcel)


async def _set_aside(lane: TopicLane, desk: Desk, subscription_id: int) -> None:
    """Take what an INACTIVE subscription holds back out of the run, and record the run without it.

    Else, after a crash, one of these would be taken for the delivery in doubt.
    """
    lane.stop_reading_on()
    kept = [parcel for parcel in lane.queue if parcel.subscription_id != subscription_id]
    lane.queue.clear()
    lane.queue.extend(kept)
    await desk.settler.commit(lane.id, lane.run())


def _refill(lane: TopicLane, desk: Desk, tally: Tally) -> None:
    """Read the next run while sending when few remain, so that the lane never waits between runs.

    Not while nothing comes of this one: it may end in a pause.
    """
    level = min(lane.refill_level, _rows(lane, desk) // 2)
    is_wanted = lane.has_more and not lane.next_run and not tally.is_fruitless
    if lane.refill is None and is_wanted and len(lane.queue) <= level:
        lane.refill = asyncio.create_task(_read_on(lane, desk))


async def _read_on(lane: TopicLane, desk: Desk) -> None:
    held = tuple(parcel.delivery_id for parcel in lane.queue)
    wish = replace(_wish(lane, desk), held=held)
    try:
        parcels = await desk.reader.parcels(wish)
        await desk.know(parcel.subscription_id for parcel in parcels)
        lane.has_more = len(parcels) >= wish.rows
        await desk.settler.commit(lane.id, lane.run(*parcels))
        lane.recorded = len(lane.queue) + len(parcels)
        lane.next_run = parcels
    except LaneLostError:
        # The lane's own next commit is told the same.
        return
    finally:
        if lane.refill is asyncio.current_task():
            lane.refill = None


async def _pause(lane: TopicLane) -> None:
    """Wait until the lane may try again, or somebody nudges it."""
    await lane.wait_out_pause()
    if lane.is_yielding:
        return
    lane.paused_until = None
    lane.skipped_due = 0.0


async def _linger(lane: TopicLane, desk: Desk) -> bool:
    """Wait for work a while; False when none came and the lane can be given back."""
    await _say_that_it_flows(lane, desk)
    lane.failures = 0
    due_in = lane.skipped_due - time.monotonic()
    came = await wait_for(lane.news, min(due_in, LINGER_SECONDS) if due_in > 0 else LINGER_SECONDS)
    return came or due_in > 0


async def _end_run(lane: TopicLane, desk: Desk) -> None:
    """Leave nothing in doubt for the next sender: what is not sent is not under way.

    A lane that is stopped stays so; whether its pause is over is for the next sender to see.
    """
    has_more = bool(lane.queue or lane.next_run or lane.refill)
    lane.forget_runs()
    if has_more:
        await desk.settler.commit(lane.id, lane.run())


async def _say_that_it_flows(lane: TopicLane, desk: Desk) -> None:
    """Nothing waits: empty the recorded run unless it is short, and say that the lane is not blocked any more.

    A settled delivery in a run means nothing. But whoever takes the shard looks at each.
    """
    if lane.is_blocked:
        await desk.settler.commit(lane.id, _flows(lane, ends_run=True))
    elif lane.recorded > SHORT_RUN:
        await desk.settler.commit(lane.id, lane.run())
    else:
        return
    lane.recorded = 0
