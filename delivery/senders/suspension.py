"""A suspended lane: nothing is sent until a probe succeeds or a person resumes it (webMethods).

The delivery that used up its attempts stays on top, and gets as many attempts again. A person's
action is a change of the lane's row, and of the delivery on top; a nudge only requests a look at
them. If the top delivery is held back by its subscription, or was cancelled, the lane has no reason
to stay suspended. While the whole lane is held it stays suspended, and nothing is probed. Only a
lane whose attempts were used up is probed: after a rejection a person decides.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delivery.senders.context import SenderContext
from delivery.senders.entries import Entry, FreshBudget, LaneChange, Settlement
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.parcel import Endpoint
from delivery.states import LaneState, Status


def suspend_lane(lane: SenderLane, settlement: Settlement, endpoint: Endpoint) -> LaneChange:
    """Suspend the lane because of this outcome.

    The first probe is due at once, as with webMethods' monitoring service, unless a probe has just
    resumed the lane and nothing was delivered since: probe and attempt would alternate without a
    pause.
    """
    is_probed = bool(endpoint.probe_url) and settlement.verdict.status is Status.PENDING
    first_wait = endpoint.rules.probe_seconds if lane.stops.is_on_trial else 0.0
    return lane.stops.suspend(
        settlement.delivery_id,
        endpoint.subscription_id,
        reason=settlement.outcome.reason,
        wait_seconds=first_wait if is_probed else None,
    )


async def check_suspension(lane: SenderLane, context: SenderContext) -> None:
    """Wait until a probe is due or a nudge arrives, and check whether the lane may continue."""
    if seconds := lane.stops.suspended_left:
        await _wait_for_nudge(lane, seconds)
    if lane.is_yielding:
        return
    was_nudged = lane.nudged.is_set()
    lane.nudged.clear()
    (row,) = await context.read_connection.fetch("suspension", {"lane": lane.id})
    if row["state"] != LaneState.SUSPENDED:
        lane.stops.resume_blocked(row["delivery_id"], reason=row["reason"])
        return
    endpoint = await _top(row, context)
    if endpoint is None:
        await _resume(
            lane, context, reason="The delivery that suspended it is no longer to be sent."
        )
    elif endpoint.is_held_whole or not endpoint.probe_url or row["status"] != Status.PENDING:
        lane.stops.stay_suspended(None)
    elif not was_nudged or lane.stops.suspended_left in (0.0, math.inf):
        await _probe(lane, context, row, endpoint)


async def _wait_for_nudge(lane: SenderLane, seconds: float) -> None:
    try:
        await asyncio.wait_for(lane.nudged.wait(), None if seconds == math.inf else seconds)
    except TimeoutError:
        return


async def _top(row: Mapping[str, Any], context: SenderContext) -> Endpoint | None:
    """Return the endpoint of the delivery that suspends the lane; None if none does any more."""
    if row["status"] not in (Status.PENDING, Status.REJECTED):
        return None
    await context.refresh([row["subscription_id"]])
    endpoint = context.endpoints[row["subscription_id"]]
    return endpoint if endpoint.is_active or endpoint.is_held_whole else None


async def _probe(
    lane: SenderLane, context: SenderContext, row: Mapping[str, Any], endpoint: Endpoint
) -> None:
    with lane.in_flight.probing():
        fault = await context.client.probe(endpoint.probe_url, seconds=endpoint.timeout_seconds)
    if not fault:
        budget = FreshBudget(lane_id=lane.id, delivery_id=row["delivery_id"])
        up = lane.stops.up(row["subscription_id"])
        reason = "The probe URL answered."
        await _resume(lane, context, budget, *up, reason=reason, is_on_trial=True)
        return
    wait = endpoint.rules.probe_seconds
    change = lane.stops.suspend(
        row["delivery_id"], row["subscription_id"], reason=row["reason"], wait_seconds=wait
    )
    # A person may have resumed the lane during the probe.
    await context.commit(lane, replace(change, stays=True))


async def _resume(
    lane: SenderLane,
    context: SenderContext,
    *others: Entry,
    reason: str,
    is_on_trial: bool = False,
) -> None:
    await context.commit(lane, *others, lane.stops.resume(is_on_trial=is_on_trial, reason=reason))
