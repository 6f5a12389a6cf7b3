"""Serving a lane of independent messages: a queue sender's, the retry lane, the callback lane.

A QUEUE message goes to exactly one endpoint of each of its groups. In the retry lane and the callback lane each delivery
is a group of its own, without siblings.

Messages are independent, so many are under way at once. Of a group the endpoints are tried one after another:

    choose ─▶ record what is under way ─▶ send ─▶ answer ─▶ commit ─▶ done, or choose the next …
           1                            2       3         4

1. Nothing was sent. 2–4. What the lane's row names and is still as it was then is in doubt;
the policy says whether it is sent again, to the same endpoint first, or held, and then no sibling is sent either.
With a DELIVERED its siblings become REDUNDANT in the same transaction, and the
table refuses a second DELIVERED of a group.

When no endpoint takes a message it stays PENDING, for a later cycle or when its policy's schedule says. An endpoint that is down is left alone for the
policy's pause, and what only it could take is not even read meanwhile, so that one group that is down costs the
others nothing.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg

from delivery.outcome import Outcome, lost
from delivery.senders.desk import Desk
from delivery.senders.entries import LaneChange, Redundant, Settlement, settle
from delivery.senders.health import Health
from delivery.senders.parcel import Endpoint, Group, Parcel, Place
from delivery.senders.queue_lane import QueueLane, UnderWay
from delivery.senders.read import groups_of
from delivery.senders.settle import LaneLostError
from delivery.states import LaneState, OutcomeClass, Status
from delivery.verdict import Rules, Step, Verdict, asked_seconds, judge_apart, judge_lost, pause_seconds

log = logging.getLogger(__name__)

# How long an idle lane keeps its lock in case more comes.
LINGER_SECONDS = 5.0
# A pause that is over, and what was put off, are looked for this often.
LOOK_SECONDS = 0.5
# With something in hand, what came meanwhile is read this often.
NEWS_SECONDS = 0.1

_UNREACHABLE = frozenset(
    {
        OutcomeClass.TIMEOUT,
        OutcomeClass.UNREACHABLE,
        OutcomeClass.TLS,
        OutcomeClass.REFUSED_ADDRESS,
        OutcomeClass.UNAVAILABLE,
        OutcomeClass.RATE_LIMITED,
    }
)


async def serve(lane: QueueLane, desk: Desk) -> None:
    """Serve the lane until it has been idle for a while, is asked to yield, or is lost."""
    try:
        async with asyncio.TaskGroup() as jobs:
            await _serve(lane, desk, jobs)
    except* LaneLostError:
        log.warning("lane lost", extra={"lane": lane.id})


async def _serve(lane: QueueLane, desk: Desk, jobs: asyncio.TaskGroup) -> None:
    idle_until = time.monotonic() + LINGER_SECONDS
    while not lane.is_yielding:
        lane.changed.clear()
        if lane.nudge.is_set():
            _look_again(lane)
        await _read(lane, desk)
        _begin(lane, desk, jobs)
        if lane.is_busy:
            idle_until = time.monotonic() + LINGER_SECONDS
        elif time.monotonic() > idle_until:
            break
        await _wait(lane)
    lane.forget_ready()
    while lane.is_sending:
        lane.changed.clear()
        await lane.changed.wait()
    await desk.settler.commit(lane.id, LaneChange(lane_id=lane.id, state=LaneState.IDLE))


def _look_again(lane: QueueLane) -> None:
    lane.nudge.clear()
    lane.news.set()
    lane.forget_ready()
    for health in lane.health.values():
        health.try_now()


async def _read(lane: QueueLane, desk: Desk) -> None:
    """Read on when little is left that may go somewhere, if there is more or news of more."""
    rows, max_bytes = desk.rows_of_a_lane() // 4, desk.bytes_of_a_lane()
    closed = lane.closed(rows=rows, max_bytes=max_bytes)
    if lane.ready.open_count(closed) > rows // 2 or not _is_wanted(lane, closed):
        return
    lane.news.clear()
    lane.read_at = time.monotonic()
    held = set(lane.held)
    wish = {"lane": lane.id, "rows": rows, "bytes": max_bytes, "held": list(held), **_excluded(closed)}
    found = await desk.reader.fetch(lane.manner.statement, wish)
    # What we held then may be settled by now, while the row that was read says otherwise.
    groups = [
        group for group in groups_of(found) if held.isdisjoint(parcel.delivery_id for parcel in group.left)
    ]
    await desk.know(parcel.subscription_id for group in groups for parcel in group.left)
    is_cut = 2 * sum(len(group.left[0].body) for group in groups) >= max_bytes
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
    if (not endpoint.is_active or endpoint.is_disabled) and not await desk.may_send(parcel.subscription_id):
        return False
    if endpoint.fault:
        # Ours, and no attempt: its siblings may take the message.
        health.failed(endpoint.rules, is_unreachable=True)
        return False
    outcome = await _send(parcel, lane, desk)
    verdict = judge_apart(outcome, endpoint.rules, parcel.tries)
    settlement = settle(parcel, endpoint, lane_id=lane.id, verdict=verdict, outcome=outcome)
    if verdict.status is not Status.DELIVERED:
        if lane.manner.spares:
            _learn(health, outcome, verdict, endpoint.rules)
        await _record(lane, desk, settlement, endpoint)
        await desk.see_circuit(settlement)
        return False
    health.accepted()
    return await _record(lane, desk, settlement, endpoint, siblings=_siblings(group, parcel, lane))


async def _record(
    lane: QueueLane,
    desk: Desk,
    settlement: Settlement,
    endpoint: Endpoint,
    *,
    siblings: Sequence[Redundant] = (),
) -> bool:
    """Commit an outcome; False if it cannot be stored, which is as good as lost.

    It must not end the attempts of everybody else in the lane, nor be made again and again without a pause.
    """
    try:
        await desk.settler.commit(lane.id, settlement, *siblings)
    except psycopg.Error:
        log.exception("outcome not stored", extra={"lane": lane.id, "delivery": settlement.delivery_id})
        await desk.settler.commit(lane.id, _as_lost(settlement, endpoint.rules))
        return False
    return True


def _as_lost(settlement: Settlement, rules: Rules) -> Settlement:
    verdict = judge_lost(rules)
    if verdict.status is Status.PENDING:
        pause = pause_seconds(rules, failures=settlement.number)
        verdict = replace(verdict, step=Step.SKIP, wait_seconds=pause)
    return replace(settlement, verdict=verdict, outcome=lost(datetime.now(UTC)), circuit=None)


def _siblings(group: Group, parcel: Parcel, lane: QueueLane) -> list[Redundant]:
    if group.number is None:
        return []
    return [
        Redundant(
            lane_id=lane.id,
            message_id=group.message_id,
            queue_group=group.number,
            delivery_id=parcel.delivery_id,
        )
    ]


async def _send(parcel: Parcel, lane: QueueLane, desk: Desk) -> Outcome:
    lane.under_way[parcel.delivery_id] = under_way = UnderWay(parcel.place, parcel.attempts)
    try:
        await desk.settler.commit(lane.id, lane.run())
        under_way.since = time.monotonic()
        return await desk.send(parcel)
    finally:
        # Its outcome is handed in before anything else can run, and so before a run without it.
        del lane.under_way[parcel.delivery_id]


def _learn(health: Health, outcome: Outcome, verdict: Verdict, rules: Rules) -> None:
    if verdict.step is Step.NEXT:
        health.answered()
        return
    health.failed(
        rules,
        is_unreachable=outcome.outcome in _UNREACHABLE,
        wait_seconds=asked_seconds(outcome, rules) or 0.0,
    )
