"""The engine: serving a lane, whatever its window.

    check again after a nudge ─▶ read ahead ─▶ begin jobs ─▶ review the rows' endpoints ─┐
      ▲                                                                                  ▼
      └─────────────────────────────────────────────────────────────────── wait for a change

The jobs send; see `delivery.senders.attempt`. `README.md` has states, crash windows and locks.
"""

import asyncio
import time

from delivery.senders.attempt import SendingJob
from delivery.senders.context import SenderContext
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.read_ahead import read_ahead
from delivery.senders.suspension import check_suspension

# An idle lane stays in memory this long, in case more arrives.
LINGER_SECONDS = 5.0


async def serve_lane(lane: SenderLane, context: SenderContext) -> None:
    """Serve the lane until it has been idle for a while, or must yield; raise its fault, if any."""
    try:
        await _serve(lane, context)
    except asyncio.CancelledError:
        lane.jobs.abandon()
        raise
    except Exception as fault:  # noqa: BLE001 - raised below, once no attempt is in flight
        lane.fail(fault)
    await _wait_for_jobs(lane)
    if lane.fault is not None:
        raise lane.fault


async def _serve(lane: SenderLane, context: SenderContext) -> None:
    await context.commit(lane, *lane.stops.begin())
    is_ended = False
    while not is_ended:
        await _serve_until_yielding(lane, context)
        await _wait_for_jobs(lane)
        # The lane may be resumed before it has ended.
        is_ended = not lane.is_sending
    if lane.fault is None:
        await _forget(lane, context, had_more=lane.stock.forget())
        await _review(lane, context)


async def _serve_until_yielding(lane: SenderLane, context: SenderContext) -> None:
    """Serve the lane until it has been idle for a while, or must yield."""
    idle_until, was_busy = 0.0, True
    while not lane.is_yielding:
        lane.changed.clear()
        if lane.waits_for_jobs:
            await _wait_for_jobs(lane)
            continue
        if lane.stops.is_suspended:
            await check_suspension(lane, context)
            continue
        if lane.nudged.is_set():
            await _forget(lane, context, had_more=lane.look_again())
            await _review(lane, context)
        is_review_due = lane.stops.is_review_due
        if is_review_due:
            # Read before the review: an endpoint for which something waits is tried.
            lane.notified.set()
        await read_ahead(lane, context)
        _begin(lane, context)
        if is_review_due:
            await _review(lane, context)
        await context.commit(lane, *lane.end_idle_stop())
        is_busy = lane.is_busy or lane.stops.is_blocked
        if is_busy or was_busy:
            idle_until = time.monotonic() + LINGER_SECONDS
        elif time.monotonic() > idle_until:
            return
        was_busy = is_busy
        await _wait(lane, linger=idle_until - time.monotonic())


def _begin(lane: SenderLane, context: SenderContext) -> None:
    while (chosen := lane.take()) is not None:
        lane.jobs.begin(SendingJob(lane, context).deliver(chosen))


async def _forget(lane: SenderLane, context: SenderContext, *, had_more: bool) -> None:
    """Record that the forgotten deliveries are not in flight: unsent, they must not be in doubt."""
    if had_more and lane.window.records_ahead:
        await context.commit(lane, lane.run())


async def _review(lane: SenderLane, context: SenderContext) -> None:
    """End the stops of endpoints that are not DOWN any more, or for which nothing waits.

    Endpoints for which nothing waits stay DOWN by their rows, because nothing shows that they are
    up, but they stop nothing.
    """
    if not (down := lane.stops.begin_review()):
        return
    asked = {"lane": lane.id, "subscription": list(down)}
    rows = await context.read_connection.fetch("still_down", asked)
    quiet = [row["id"] for row in rows if not row["is_waiting"]]
    gone = set(down).difference(row["id"] for row in rows)
    await context.commit(lane, *lane.stops.forget(quiet, gone=gone))


async def _wait(lane: SenderLane, *, linger: float) -> None:
    try:
        # Cheaper than `asyncio.wait_for`, which makes a task of each wait.
        async with asyncio.timeout(lane.seconds_to_wait(linger)):
            await lane.changed.wait()
    except TimeoutError:
        lane.record_time()


async def _wait_for_jobs(lane: SenderLane) -> None:
    """Wait until nothing is in flight, if the lane continues only then."""
    while lane.waits_for_jobs:
        lane.changed.clear()
        await lane.changed.wait()
