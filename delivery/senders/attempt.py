"""The attempts of one job: check, record, send, judge, commit.

    choose ─▶ record the attempt ─▶ send ─▶ answer ─▶ commit ─▶ done, or choose the next …
           1                      2       3         4

`README.md` lists the windows in which a sender may die. A lane that records its run ahead did so
when it read the deliveries.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import psycopg

from delivery.outcome import Outcome, lost_outcome, script_failed, unsendable_outcome
from delivery.senders.context import SenderContext
from delivery.senders.entries import Change, Entry, Redundant, Settlement, settlement_of
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.parcel import Group, Parcel
from delivery.senders.run_result import RunResult
from delivery.senders.suspension import suspend_lane
from delivery.states import Status
from delivery.verdict import NextStep, Rules, judge_lost, pause_seconds

log = logging.getLogger(__name__)

# These steps leave the delivery first in its lane, so its run is over.
_STOPPING = frozenset({NextStep.BLOCK, NextStep.AGAIN, NextStep.SUSPEND})


class SendingJob:
    """One sending task of a lane."""

    def __init__(self, lane: SenderLane, context: SenderContext) -> None:
        self._lane = lane
        self._context = context

    async def deliver(self, chosen: tuple[Group, Parcel] | None) -> None:
        """Deliver groups in turn while the lane has something to send."""
        # Read once: each look at the running task costs a system call.
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        while chosen is not None:
            await self._deliver_group(*chosen)
            chosen = self._lane.take()

    async def _deliver_group(self, group: Group, first: Parcel) -> None:
        """Try the endpoints of the group until an endpoint accepts the message.

        `first` is counted already.
        """
        lane = self._lane
        parcels = list(group.left)
        parcel: Parcel | None = first
        try:
            while parcel is not None:
                group.left.remove(parcel)
                try:
                    is_delivered = await self._try(group, parcel)
                finally:
                    lane.leave(parcel)
                parcel = lane.take_sibling(group) if group.left and not is_delivered else None
        finally:
            lane.stock.drop(parcels)

    async def _try(self, group: Group, parcel: Parcel) -> bool:
        """Make one attempt and commit its result.

        Return True if the endpoint accepted the message.
        """
        lane, context = self._lane, self._context
        endpoint = context.endpoints[parcel.subscription_id]
        needs_check = not endpoint.is_active or endpoint.is_disabled
        if needs_check and not await context.may_send(parcel.subscription_id):
            held = parcel.subscription_id
            await self._set_aside(group, parcel, lambda other: other.subscription_id == held)
            return False
        if endpoint.fault and not parcel.is_volatile:
            # A fault on our side is no attempt, and never costs the receiver an attempt. A sibling
            # may still accept the message.
            lane.in_flight.remove(parcel)
            self._cut_short(group)
            await context.commit(
                lane, *lane.stops.record_fault(parcel, endpoint.rules, fault=endpoint.fault)
            )
            return False
        outcome = await self._send(group, parcel)
        if outcome is None:
            if group.run_result is not None and group.generation == lane.stock.generation:
                await self._set_aside(group, parcel, context.is_overdue)
            else:
                await context.commit(lane, lane.run(), *lane.stops.report(parcel))
            return False
        return await self._conclude(group, parcel, outcome)

    async def _set_aside(
        self, group: Group, parcel: Parcel, is_set_aside: Callable[[Parcel], bool]
    ) -> None:
        """Drop the parcel, and all others in memory that must not be sent for the same reason.

        The run of an ordered lane goes on without them, and pauses after its end as any other run.
        The run is recorded without them: otherwise the successor of a crashed sender could treat a
        dropped delivery as the delivery in doubt.
        """
        lane, context = self._lane, self._context
        lane.in_flight.remove(parcel)
        lane.stock.set_aside(is_set_aside)
        if group.run_result is not None:
            group.run_result.set_aside()
            await context.commit(lane, lane.run())
            if not group.run_result.left:
                await self._end_run(group.run_result)

    async def _send(self, group: Group, parcel: Parcel) -> Outcome | None:
        """Make one attempt; return None if it must not be made any more once it is recorded.

        The delivery is then overdue, or a person may have cancelled it.
        """
        lane, context = self._lane, self._context
        endpoint = context.endpoints[parcel.subscription_id]
        if endpoint.fault:
            lane.in_flight.remove(parcel)
            return unsendable_outcome(endpoint.fault, now=datetime.now(UTC))
        if parcel.transformation is not None and parcel.transformation.fault:
            lane.in_flight.remove(parcel)
            return script_failed(parcel.transformation.fault, now=datetime.now(UTC))
        try:
            if not lane.window.records_ahead:
                lane.enter(parcel)
                await context.commit(lane, lane.run())
            if context.is_overdue(parcel) or group.generation != lane.stock.generation:
                return None
            lane.in_flight.begin(parcel, self._task, now=time.monotonic())
            return await context.send(lane.id, parcel, request=lane.request)
        finally:
            # The outcome is handed in before any other coroutine runs, so before a run without this
            # attempt.
            lane.in_flight.remove(parcel)

    async def _conclude(self, group: Group, parcel: Parcel, outcome: Outcome) -> bool:
        """Commit the result of an outcome; return True if the endpoint accepted the message."""
        lane, context = self._lane, self._context
        endpoint = context.endpoints[parcel.subscription_id]
        verdict = lane.window.judge(outcome, endpoint.rules, parcel.tries)
        settlement = settlement_of(
            parcel, endpoint, lane_id=lane.id, verdict=verdict, outcome=outcome
        )
        settlement = context.successes.count_success(settlement, endpoint)
        if verdict.step in _STOPPING:
            self._cut_short(group)
        changes: list[Entry] = [
            *lane.stops.record_outcome(parcel, outcome, verdict, endpoint.rules)
        ]
        if verdict.step is NextStep.SUSPEND:
            changes.append(suspend_lane(lane, settlement, endpoint))
        if verdict.status is Status.DELIVERED and group.number is not None:
            changes.append(_siblings(group, parcel, lane))
        is_stored = await self._record(settlement, parcel, changes)
        if settlement.counted_subscription_id is not None:
            await context.refresh_after_failure(settlement)
        if group.run_result is not None and verdict.step not in _STOPPING:
            _count(group.run_result, parcel, settlement, endpoint.rules)
            if not group.run_result.left:
                await self._end_run(group.run_result)
        return is_stored and verdict.status is Status.DELIVERED

    async def _record(
        self, settlement: Settlement, parcel: Parcel, others: Sequence[Entry]
    ) -> bool:
        """Commit an outcome; return False if it cannot be stored, which is as good as lost.

        The failure must not end the other attempts of the lane, and the attempt must not be
        repeated without a pause. An ordered lane ends instead, and starts again with the delivery
        in doubt.
        """
        lane, context = self._lane, self._context
        if not others:
            # Runs while this task waits for the commit, which takes longer.
            self._loop.call_soon(lane.prepare, context.make_request)
        try:
            await context.commit(
                lane, settlement, *others, is_urgent=bool(others) or lane.has_more_to_send
            )
        except psycopg.Error:
            if lane.window.records_ahead:
                raise
            log.exception(
                "outcome not stored", extra={"lane": lane.id, "delivery": settlement.delivery_id}
            )
            rules = context.endpoints[parcel.subscription_id].rules
            # The changes of lane and endpoint handed in with it may be out of date by now.
            is_change = any(isinstance(entry, Change) for entry in others)
            changes = lane.stops.changes(lane.window.key_of(parcel)) if is_change else []
            await context.commit(
                lane, _as_lost(settlement, rules, is_only=parcel.is_volatile), *changes
            )
            return False
        return True

    def _cut_short(self, group: Group) -> None:
        """Note the failures of a run whose rest is forgotten: they count like a whole run's."""
        if group.run_result is not None:
            self._lane.stops.runs.record(group.run_result)

    async def _end_run(self, result: RunResult) -> None:
        """End the run; the lane may have to pause, or has nothing more to read.

        An early attempt that failed changes no stop; only its run is over.
        """
        lane = self._lane
        if result.leaves_nothing:
            lane.stock.exhaust()
        changes: list[Entry] = [*lane.stops.record_run(result)]
        if result.is_early and result.is_fruitless:
            changes.append(lane.run())
        await self._context.commit(lane, *changes)


def _as_lost(settlement: Settlement, rules: Rules, *, is_only: bool) -> Settlement:
    verdict = judge_lost(rules, is_only=is_only)
    if verdict.status is Status.PENDING:
        pause = pause_seconds(rules, failures=settlement.number)
        verdict = replace(verdict, step=NextStep.SKIP, wait_seconds=pause)
    return replace(
        settlement,
        verdict=verdict,
        outcome=lost_outcome(datetime.now(UTC)),
        counted_subscription_id=None,
    )


def _siblings(group: Group, parcel: Parcel, lane: SenderLane) -> Redundant:
    assert group.number is not None
    return Redundant(
        lane_id=lane.id,
        message_id=group.message_id,
        queue_group=group.number,
        delivery_id=parcel.delivery_id,
    )


def _count(result: RunResult, parcel: Parcel, settlement: Settlement, rules: Rules) -> None:
    if settlement.verdict.step is NextStep.SKIP:
        result.count_failed(
            parcel.delivery_id,
            subscription_id=parcel.subscription_id,
            reason=settlement.outcome.reason,
            rules=rules,
            was_skipped=parcel.is_skipped,
        )
    else:
        result.count_settled(parcel.subscription_id, was_skipped=parcel.is_skipped)
