"""A suspended lane: nothing is sent until a probe succeeds or a person resumes it (webMethods).

    FLOWING ── attempts used up, or a rejection ──▶ SUSPENDED ── a probe succeeds ──▶ FLOWING
                                                       │  ▲ └───── a person resumes it ──▶ BLOCKED, due at once
                                                       └──┘ a probe fails

The delivery that used up its attempts stays on top, and gets as many again. What a person does is a change of the lane's
row, and of the delivery on top; a nudge only says to look. A lane whose top is held back by its subscription, or
was cancelled, has no reason to be suspended any more. Probes are asked only where attempts were
used up: after a rejection a person decides.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delivery.senders.desk import Desk
from delivery.senders.entries import FreshBudget, LaneChange, Settlement
from delivery.senders.parcel import Endpoint
from delivery.senders.topic_lane import TopicLane
from delivery.states import LaneState, Status


async def suspend(lane: TopicLane, desk: Desk, settlement: Settlement, endpoint: Endpoint) -> None:
    """Commit the outcome that suspends the lane."""
    is_probed = bool(endpoint.probe_url) and settlement.verdict.status is Status.PENDING
    lane.forget_runs()
    lane.failures += 1
    change = _suspended(
        lane,
        settlement.delivery_id,
        reason=settlement.outcome.reason,
        wait_seconds=_first_wait(lane, endpoint) if is_probed else None,
    )
    await desk.settler.commit(lane.id, settlement, change)


def _first_wait(lane: TopicLane, endpoint: Endpoint) -> float:
    """The first probe comes at once, as webMethods' monitoring service does.

    But not when a probe has just resumed the lane, and nothing came of it: the two would chase each other.
    """
    return endpoint.rules.probe_seconds if lane.is_on_trial else 0.0


async def stay_suspended(lane: TopicLane, desk: Desk) -> None:
    """Wait until a probe is due or somebody nudges the lane, and see whether it may go on."""
    await lane.wait_out_pause()
    if lane.is_yielding:
        return
    was_nudged = lane.nudge.is_set()
    lane.nudge.clear()
    (found,) = await desk.reader.fetch("suspension", {"lane": lane.id})
    if found["state"] != LaneState.SUSPENDED:
        # A person resumed it: it counts as blocked until something of it is delivered.
        _go_on(lane, failures=1)
        return
    endpoint = await _top(found, desk)
    if endpoint is None:
        await _resume(lane, desk, reason="What suspended it is not to be sent any more.")
    elif not endpoint.probe_url or found["status"] != Status.PENDING:
        lane.pause(None)
    elif not was_nudged or lane.pause_left() in (0.0, math.inf):
        await _probe(lane, desk, found, endpoint)


async def _top(found: Mapping[str, Any], desk: Desk) -> Endpoint | None:
    """Return where the delivery goes that suspends the lane; None if it suspends it no more."""
    if found["status"] not in (Status.PENDING, Status.REJECTED):
        return None
    await desk.refresh([found["subscription_id"]])
    endpoint = desk.endpoints[found["subscription_id"]]
    return endpoint if endpoint.is_active else None


async def _probe(lane: TopicLane, desk: Desk, found: Mapping[str, Any], endpoint: Endpoint) -> None:
    fault = await lane.sending(desk.client.probe(endpoint.probe_url, seconds=endpoint.timeout_seconds))
    if not fault:
        budget = FreshBudget(lane_id=lane.id, delivery_id=found["delivery_id"])
        await _resume(lane, desk, budget, reason="The probe URL answered.")
        lane.is_on_trial = True
        return
    wait = endpoint.rules.probe_seconds
    change = _suspended(lane, found["delivery_id"], reason=found["reason"], wait_seconds=wait)
    # A person may have resumed it while the probe was under way.
    await desk.settler.commit(lane.id, replace(change, stays=True))


async def _resume(lane: TopicLane, desk: Desk, *budget: FreshBudget, reason: str) -> None:
    _go_on(lane, failures=0)
    change = LaneChange(lane_id=lane.id, state=LaneState.IDLE, reason=reason)
    await desk.settler.commit(lane.id, *budget, change)


def _go_on(lane: TopicLane, *, failures: int) -> None:
    lane.is_suspended = False
    lane.is_blocked = failures > 0
    lane.paused_until = None
    lane.failures = failures


def _suspended(
    lane: TopicLane, delivery_id: int | None, *, reason: str, wait_seconds: float | None
) -> LaneChange:
    lane.is_suspended = True
    lane.pause(wait_seconds)
    return LaneChange(
        lane_id=lane.id,
        state=LaneState.SUSPENDED,
        reason=reason,
        delivery_id=delivery_id,
        failures=lane.failures,
        wait_seconds=wait_seconds,
    )
