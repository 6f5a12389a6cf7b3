"""What an attempt leads to where messages are independent: what is learned of the endpoint, recorded, and told."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import psycopg

from delivery.outcome import Outcome, lost
from delivery.senders.desk import Desk
from delivery.senders.entries import Entry, LaneChange, Redundant, Settlement, settle
from delivery.senders.health import Health
from delivery.senders.parcel import Group, Parcel
from delivery.senders.queue_lane import QueueLane
from delivery.states import OutcomeClass, Status
from delivery.verdict import Rules, Step, Verdict, asked_seconds, judge_apart, judge_lost, pause_seconds

log = logging.getLogger(__name__)

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


async def conclude(group: Group, parcel: Parcel, lane: QueueLane, desk: Desk, *, outcome: Outcome) -> bool:
    """Commit what an outcome leads to; True when the endpoint took the message."""
    endpoint, health = desk.endpoints[parcel.subscription_id], lane.health_of(parcel)
    verdict = judge_apart(outcome, endpoint.rules, parcel.tries, moves=lane.manner.moves)
    settlement = settle(parcel, endpoint, lane_id=lane.id, verdict=verdict, outcome=outcome)
    settlement = desk.successes.see(settlement, endpoint)
    if verdict.status is not Status.DELIVERED:
        if lane.manner.spares:
            _learn(health, outcome, verdict, endpoint.rules)
        is_ours = outcome.outcome is OutcomeClass.UNSENDABLE
        told = tell(lane, parcel, reason="" if is_ours else outcome.reason)
        await _record(lane, desk, settlement, parcel, also=told)
        await desk.see_circuit(settlement)
        return False
    health.accepted()
    also: list[Entry] = [*_siblings(group, parcel, lane), *lane.outages.end(parcel.place)]
    return await _record(lane, desk, settlement, parcel, also=also)


def tell(lane: QueueLane, parcel: Parcel, *, reason: str = "") -> list[LaneChange]:
    """What people are to know of an endpoint that has not taken a message; without a `reason` it was not tried.

    That it is down is told when nothing is under way there any more, however the last of that ended.
    """
    if not lane.manner.tells:
        return []
    health = lane.health_of(parcel)
    if not health.failures:
        return lane.outages.end(parcel.place)
    if not health.is_down():
        return []
    if reason:
        lane.outages.suspect(parcel, health, reason=reason)
    return [] if lane.is_tried(parcel.place) else lane.outages.begin(parcel.place)


async def _record(
    lane: QueueLane, desk: Desk, settlement: Settlement, parcel: Parcel, *, also: Sequence[Entry]
) -> bool:
    """Commit an outcome; False if it cannot be stored, which is as good as lost.

    It must not end the attempts of everybody else in the lane, nor be made again and again without a pause.
    """
    try:
        await desk.settler.commit(lane.id, settlement, *also)
    except psycopg.Error:
        log.exception("outcome not stored", extra={"lane": lane.id, "delivery": settlement.delivery_id})
        rules = desk.endpoints[parcel.subscription_id].rules
        # What it was to say of the lane may be old by now.
        changes = [lane.outages.change() for entry in also if isinstance(entry, LaneChange)]
        as_lost = _as_lost(settlement, rules, is_only=parcel.is_volatile)
        await desk.settler.commit(lane.id, as_lost, *changes)
        return False
    return True


def _as_lost(settlement: Settlement, rules: Rules, *, is_only: bool) -> Settlement:
    verdict = judge_lost(rules, is_only=is_only)
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


def _learn(health: Health, outcome: Outcome, verdict: Verdict, rules: Rules) -> None:
    if outcome.outcome is OutcomeClass.UNSENDABLE:
        # It was never asked.
        return
    if verdict.step is Step.NEXT and verdict.status is not Status.FAILED:
        health.answered()
        return
    health.failed(
        rules,
        is_unreachable=outcome.outcome in _UNREACHABLE,
        wait_seconds=asked_seconds(outcome, rules) or 0.0,
    )
