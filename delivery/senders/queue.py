"""Serving a lane of independent messages: of a queue sender, retries, callbacks, or a CONCURRENT subscriber.

A QUEUE message goes to exactly one endpoint of each of its groups. In the other lanes each delivery
is a group of its own, without siblings.

Messages are independent, so many are under way at once. Of a group the endpoints are tried one after another:

    choose ─▶ record what is under way ─▶ send ─▶ answer ─▶ commit ─▶ done, or choose the next …
           1                            2       3         4

1. Nothing was sent. 2–4. What the lane's row names and is still as it was then is in doubt; the policy says
whether it is sent again, to the same endpoint first, or held, and then no sibling is sent either. With a
DELIVERED its siblings become REDUNDANT in the same transaction, and the table refuses a second DELIVERED of a
group.

When no endpoint takes a message it stays PENDING, for a later cycle or when its policy's schedule says. An
endpoint that is down is left alone for the policy's pause, and what only it could take is not even read
meanwhile, so that one group that is down costs the others nothing.

What has a time to live is not sent once that is over when the run that names it is committed; it is taken out
of the run then, for `delivery.expiry` leaves alone what a run names, and settles what none does.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from delivery.outcome import Outcome, unsendable
from delivery.senders.apart import conclude, tell
from delivery.senders.clock import seconds_since_boot
from delivery.senders.desk import Desk
from delivery.senders.entries import Entry, LaneChange
from delivery.senders.holding import LaneLostError
from delivery.senders.parcel import Group, Parcel, Place
from delivery.senders.queue_lane import QueueLane, UnderWay
from delivery.senders.read import groups_of
from delivery.states import LaneState

log = logging.getLogger(__name__)

# How long an idle lane is kept in memory in case more comes.
LINGER_SECONDS = 5.0
# A pause that is over, and what was put off, are looked for this often.
LOOK_SECONDS = 0.5
# With something in hand, what came meanwhile is read this often.
NEWS_SECONDS = 0.1


async def serve(lane: QueueLane, desk: Desk) -> None:
    """Serve the lane until it has been idle for a while, is asked to yield, or is lost."""
    try:
        async with asyncio.TaskGroup() as jobs:
            await _serve(lane, desk, jobs)
    except* LaneLostError:
        log.warning("lane lost", extra={"lane": lane.id})


async def _serve(lane: QueueLane, desk: Desk, jobs: asyncio.TaskGroup) -> None:
    if lane.outages.were_in_order:
        reason = "Its subscriber is CONCURRENT now."
        await desk.settler.commit(lane.id, LaneChange(lane_id=lane.id, state=LaneState.IDLE, reason=reason))
    while True:
        await _serve_until_yielding(lane, desk, jobs)
        lane.forget_ready()
        while lane.is_sending and lane.is_yielding:
            lane.changed.clear()
            await lane.changed.wait()
        if not lane.is_sending:
            break
    await _end(lane, desk)


async def _serve_until_yielding(lane: QueueLane, desk: Desk, jobs: asyncio.TaskGroup) -> None:
    """Serve the lane until it is idle for a while, or is to yield."""
    idle_until = time.monotonic() + LINGER_SECONDS
    while not lane.is_yielding:
        lane.changed.clear()
        if lane.nudge.is_set():
            _look_again(lane)
            await _review(lane, desk, lane.outages.deliveries.values())
        is_review_due = lane.outages and time.monotonic() >= lane.reviewed_at + LINGER_SECONDS
        if is_review_due:
            # What shows that an endpoint is still down comes first.
            lane.news.set()
        await _read(lane, desk)
        _begin(lane, desk, jobs)
        if is_review_due:
            await _review(lane, desk, lane.doubtful())
        if lane.is_busy or lane.outages:
            idle_until = time.monotonic() + LINGER_SECONDS
        elif time.monotonic() > idle_until:
            break
        await _wait(lane)


async def _end(lane: QueueLane, desk: Desk) -> None:
    """Nothing is under way any more; a lane that is BLOCKED stays so, if something stops it."""
    await _review(lane, desk, lane.doubtful())


async def _review(lane: QueueLane, desk: Desk, delivery_ids: Collection[int]) -> None:
    """Forget what people were told of those deliveries that do not wait any more."""
    lane.reviewed_at = time.monotonic()
    if not delivery_ids:
        return
    told = {"lane": lane.id, "delivery": list(delivery_ids)}
    rows = await desk.reader.fetch("still_waiting", told)
    gone = set(delivery_ids).difference(row["id"] for row in rows)
    await _commit(lane, desk, *lane.outages.forget(gone))


async def _commit(lane: QueueLane, desk: Desk, *entries: Entry) -> None:
    if entries:
        await desk.settler.commit(lane.id, *entries)


def _look_again(lane: QueueLane) -> None:
    lane.nudge.clear()
    lane.news.set()
    lane.forget_ready()
    lane.try_now()


async def _read(lane: QueueLane, desk: Desk) -> None:
    """Read on when little is left that may go somewhere, if there is more or news of more."""
    rows, max_bytes = lane.manner.rows(desk.rows_of_a_lane()), desk.bytes_of_a_lane()
    closed = lane.closed(rows=rows, max_bytes=max_bytes)
    if lane.ready.open_count(closed) > lane.manner.level(rows) or not _is_wanted(lane, closed):
        return
    lane.news.clear()
    lane.read_at, asked_at, wakes = time.monotonic(), seconds_since_boot(), lane.wakes
    held = set(lane.held)
    most = None if lane.manner.capacity is None else rows
    wish: dict[str, Any] = {
        "lane": lane.id,
        "rows": rows,
        "most": most,
        "bytes": max_bytes,
        "held": list(held),
    }
    wish |= _excluded(closed)
    found = await desk.reader.fetch(lane.manner.statement, wish)
    # What we held then may be settled by now, while the row that was read says otherwise.
    groups = [
        group
        for group in groups_of(found, asked_at=asked_at, wakes=wakes)
        if held.isdisjoint(parcel.delivery_id for parcel in group.left)
    ]
    await desk.know(parcel.subscription_id for group in groups for parcel in group.left)
    is_cut = len(found) == most or 2 * sum(len(group.left[0].body) for group in groups) >= max_bytes
    lane.more = (lane.more & closed) | _places_with_more(found, groups, is_cut=is_cut)
    lane.add(groups)


def _is_wanted(lane: QueueLane, closed: set[Place]) -> bool:
    """Whether there may be something to read, and news alone does not make us read all the time."""
    if lane.more - closed:
        return True
    is_rested = not lane.ready or time.monotonic() >= lane.read_at + NEWS_SECONDS
    return lane.news.is_set() and is_rested


def _excluded(closed: set[Place]) -> dict[str, list[Place]]:
    return {
        "excluded": [place for place in closed if isinstance(place, int)],
        "excluded_origins": [place for place in closed if isinstance(place, str)],
    }


def _places_with_more(
    found: Sequence[Mapping[str, Any]], groups: Sequence[Group], *, is_cut: bool
) -> set[Place]:
    """The places of subscriptions that filled their share of what was read."""
    counts = Counter(row["subscription_id"] for row in found)
    filled = {
        row["subscription_id"] for row in found if is_cut or counts[row["subscription_id"]] >= row["share"]
    }
    return {parcel.place for group in groups for parcel in group.left if parcel.subscription_id in filled}


def _begin(lane: QueueLane, desk: Desk, jobs: asyncio.TaskGroup) -> None:
    while (group := lane.next_ready()) is not None:
        parcel = lane.choose(group.left)
        assert parcel is not None
        lane.enter(parcel)
        jobs.create_task(_deliver(group, parcel, lane, desk))


async def _wait(lane: QueueLane) -> None:
    try:
        await asyncio.wait_for(lane.changed.wait(), NEWS_SECONDS if lane.news.is_set() else LOOK_SECONDS)
    except TimeoutError:
        lane.news.set()


async def _deliver(group: Group, first: Parcel, lane: QueueLane, desk: Desk) -> None:
    """Try the endpoints of the group until one takes the message; `first` has its place already."""
    parcels = list(group.left)
    parcel: Parcel | None = first
    try:
        while parcel is not None:
            group.left.remove(parcel)
            try:
                is_delivered = await _try(group, parcel, lane, desk)
            finally:
                lane.leave(parcel)
            parcel = None if is_delivered else lane.choose(group.left)
            if parcel is not None:
                lane.enter(parcel)
    finally:
        lane.release(parcels)


async def _try(group: Group, parcel: Parcel, lane: QueueLane, desk: Desk) -> bool:
    """Make one attempt and commit what it led to; True when the endpoint took the message."""
    endpoint = desk.endpoints[parcel.subscription_id]
    health = lane.health_of(parcel)
    if desk.is_overdue(parcel):
        return False
    if (not endpoint.is_active or endpoint.is_disabled) and not await desk.may_send(parcel.subscription_id):
        return False
    if endpoint.fault and not parcel.is_volatile:
        # Ours, and no attempt: its siblings may take the message.
        health.failed(endpoint.rules, is_unreachable=True)
        await _commit(lane, desk, *tell(lane, parcel, reason=endpoint.fault))
        return False
    outcome = await _send(group, parcel, lane, desk)
    if outcome is None:
        await desk.settler.commit(lane.id, lane.run(), *tell(lane, parcel))
        return False
    return await conclude(group, parcel, lane, desk, outcome=outcome)


async def _send(group: Group, parcel: Parcel, lane: QueueLane, desk: Desk) -> Outcome | None:
    """Make one attempt; None if it must not be made any more once it is recorded: it is too late, or a person may have cancelled it."""
    endpoint = desk.endpoints[parcel.subscription_id]
    if endpoint.fault:
        return unsendable(endpoint.fault, now=datetime.now(UTC))
    lane.under_way[parcel.delivery_id] = under_way = UnderWay(parcel.place, parcel.attempts)
    try:
        await desk.settler.commit(lane.id, lane.run())
        if desk.is_overdue(parcel) or group.wakes != lane.wakes:
            return None
        under_way.since = time.monotonic()
        return await desk.send(lane.id, parcel)
    finally:
        # Its outcome is handed in before anything else can run, and so before a run without it.
        del lane.under_way[parcel.delivery_id]
