"""Requests to an endpoint that refuses everything, alone and beside a healthy one, by the minute.

The lane is the senders' own, on a clock that is passed in; its deliveries are rows in memory, read
by the limits of its reads.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import pytest

from delivery.senders.lanes.lane import SenderLane
from delivery.senders.lanes.runs import EARLY_ATTEMPT_SECONDS, Runs
from delivery.senders.lanes.window import WHOLE_LANE
from delivery.senders.parcel import Group, Parcel
from delivery.senders.run_result import PieceLimits, RunResult
from delivery.states import OutcomeClass, Status
from delivery.verdict import NextStep
from tests.unit.delivery.senders.parcels import parcel
from tests.unit.delivery.senders.test_stock import serial
from tests.unit.delivery.test_verdict import TEAMFORGE, outcome

REFUSING, HEALTHY = 1, 2
MINUTE = 60.0


class Clock:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


@dataclass(slots=True)
class Row:
    """A waiting delivery, as its row in the database."""

    parcel: Parcel
    tried_at: float = 0.0


class ServedLane:
    """A lane that is served on a clock: an attempt takes 10 ms, everything else no time."""

    def __init__(
        self, clock: Clock, *, skipped: int, refuses: Callable[[Parcel], bool], most: int = 500
    ) -> None:
        self.clock = clock
        self.refuses = refuses
        self.lane: SenderLane = serial(max_queued_to_send=most, refill_level=most // 5)
        self.rows: dict[int, Row] = {}
        # When, to which subscription, and whether it had been skipped.
        self.requests: list[tuple[float, int, bool]] = []
        for _ in range(skipped):
            self.publish(REFUSING, is_skipped=True)

    def publish(self, subscription_id: int, *, is_skipped: bool = False) -> None:
        id = len(self.rows) + len(self.requests) + 1
        while id in self.rows:
            id += 1
        made = parcel(subscription_id, delivery_id=id)
        self.rows[id] = Row(replace(made, is_skipped=is_skipped))
        self.lane.notify()

    def serve(self, *, seconds: float, publications: Collection[tuple[float, int]] = ()) -> None:
        """Serve for so long; publications are of a moment from now, and a subscription."""
        due = sorted((self.clock.now + after, id) for after, id in publications)
        end = self.clock.now + seconds
        while self.clock.now < end:
            while due and due[0][0] <= self.clock.now:
                self.publish(due.pop(0)[1])
            if self._read_on() or self._send():
                continue
            self.lane.end_idle_stop()
            wait = self.lane.seconds_to_wait(5.0) or 0.0
            following = due[0][0] if due else end
            if self.clock.now + wait >= following:
                self.clock.now = following
            else:
                self.clock.now += wait
                self.lane.record_time()

    def requests_a_minute(self, subscription_id: int) -> list[int]:
        began = self.requests[0][0]
        counts = Counter(
            int((at - began) // MINUTE) for at, id, _ in self.requests if id == subscription_id
        )
        return [counts[minute] for minute in range(max(counts) + 1)]

    def _read_on(self) -> bool:
        lane = self.lane
        rows = lane.rows(2000)
        if not lane.wants_more(lane.stock.closed(rows=rows, max_bytes=10**9), rows=rows):
            return False
        lane.notified.clear()
        generation, in_memory = lane.stock.begin_reading()
        run = lane.run_to_read()
        limits = run.limits(rows)
        found = self._found(run, limits, in_memory)
        run.began_at = run.began_at or self.clock.now
        skipped = sum(each.is_skipped for each in found)
        run.add(limits, fresh=len(found) - skipped, skipped=skipped, is_cut=bool(in_memory))
        if not found and not run.left:
            lane.stops.record_run(run)
        groups = [Group(1, None, [each], generation, run) for each in found]
        lane.stock.add(
            groups,
            more={WHOLE_LANE} if found or run.goes_on else set(),
            is_full=not run.is_early and len(found) >= limits.rows,
        )
        return True

    def _found(
        self, run: RunResult, limits: PieceLimits, in_memory: Collection[int]
    ) -> list[Parcel]:
        """Read as `read_runs.sql` does."""
        rows = [row for id, row in sorted(self.rows.items()) if id not in in_memory]
        fresh = [row.parcel for row in rows if not row.parcel.is_skipped][: limits.fresh_rows]
        skipped = [
            row
            for row in sorted(rows, key=lambda row: row.tried_at)
            if row.parcel.is_skipped
            and row.parcel.subscription_id not in limits.resting
            and row.tried_at <= (run.began_at or self.clock.now)
        ][: limits.skipped_rows]
        tried = sorted((row.parcel for row in skipped), key=lambda each: each.delivery_id)
        if limits.is_fresh_first:
            return [*fresh, *tried][: limits.rows]
        return sorted([*fresh, *tried], key=lambda each: each.delivery_id)[: limits.rows]

    def _send(self) -> bool:
        lane = self.lane
        chosen = lane.take()
        if chosen is None:
            return False
        (group, each) = chosen
        self.clock.now += 0.01
        self.requests.append((self.clock.now, each.subscription_id, each.is_skipped))
        is_refused = self.refuses(each)
        answer = outcome(OutcomeClass.SERVER_ERROR if is_refused else OutcomeClass.SUCCESS)
        verdict = lane.window.judge(answer, TEAMFORGE, each.tries)
        lane.stops.record_outcome(each, answer, verdict, TEAMFORGE)
        row = self.rows[each.delivery_id]
        row.parcel, row.tried_at = replace(each, is_skipped=True), self.clock.now
        result = group.run_result
        assert result is not None
        if verdict.step is NextStep.SKIP:
            result.count_failed(
                each.delivery_id,
                subscription_id=each.subscription_id,
                reason="500",
                rules=TEAMFORGE,
                was_skipped=each.is_skipped,
            )
        else:
            assert verdict.status is Status.DELIVERED
            del self.rows[each.delivery_id]
            result.count_settled(each.subscription_id, was_skipped=each.is_skipped)
        lane.leave(each)
        lane.stock.drop([each])
        if not result.left:
            if result.leaves_nothing:
                lane.stock.exhaust()
            lane.stops.record_run(result)
        return True


def refuses_all(each: Parcel) -> bool:
    return each.subscription_id == REFUSING


def each_minute(count: int, *ids: int, minutes: int) -> list[tuple[float, int]]:
    """Return so many publications a minute for each of these subscriptions, in turn."""
    gap = MINUTE / count / len(ids)
    return [(gap * turn, ids[turn % len(ids)]) for turn in range(count * minutes * len(ids))]


def test_an_endpoint_that_refuses_everything_gets_half_a_run_a_minute(clock: Clock) -> None:
    served = ServedLane(clock, skipped=300, refuses=refuses_all)
    served.serve(seconds=10 * MINUTE)
    counts = served.requests_a_minute(REFUSING)
    assert counts[0] <= 7 * 250
    # A minute may have the end of a run and the next one.
    assert max(counts[2:]) <= 2 * 250
    assert sum(counts[2:]) <= 250 * len(counts[2:]) * 1.2


@pytest.mark.parametrize("count", [3, 60])
def test_a_healthy_sibling_brings_an_endpoint_that_refuses_everything_no_more_requests(
    clock: Clock, count: int
) -> None:
    served = ServedLane(clock, skipped=300, refuses=refuses_all)
    served.serve(seconds=10 * MINUTE, publications=each_minute(count, 1, 2, minutes=10))
    counts = served.requests_a_minute(REFUSING)
    # Each of its fresh ones once, and half a run of skipped ones a minute.
    assert sum(counts[2:9]) <= 7 * 1.2 * (250 + count)
    assert max(counts[2:]) <= 500 + 2 * count
    # The healthy one waits for none of them for long.
    assert sum(served.requests_a_minute(HEALTHY)) >= 10 * count - count // 3


def test_a_sibling_that_times_out_now_and_then_brings_none_either(clock: Clock) -> None:
    served = ServedLane(clock, skipped=300, refuses=refuses_all)
    served.serve(seconds=3 * MINUTE)
    lane, before = served.lane, len(served.requests)
    for _ in range(10):
        answer = outcome(OutcomeClass.TIMEOUT)
        verdict = lane.window.judge(answer, TEAMFORGE, parcel(HEALTHY).tries)
        lane.stops.record_outcome(parcel(HEALTHY), answer, verdict, TEAMFORGE)
        served.serve(seconds=1.2)
        served.publish(HEALTHY)
        served.serve(seconds=1.2)
    refused = [id for _, id, _ in served.requests[before:] if id == REFUSING]
    assert len(refused) <= 250


def test_the_skipped_are_tried_at_once_when_their_own_endpoint_accepts_again(clock: Clock) -> None:
    is_up = False
    served = ServedLane(clock, skipped=300, refuses=lambda each: refuses_all(each) and not is_up)
    served.serve(seconds=8 * MINUTE, publications=each_minute(3, REFUSING, minutes=8))
    is_up = True
    before = len(served.rows)
    assert before >= 300
    served.publish(REFUSING)
    # An early attempt, and then all of them, 10 ms each.
    served.serve(seconds=EARLY_ATTEMPT_SECONDS + 0.02 * before)
    assert served.rows == {}


def test_a_poisoned_delivery_is_not_tried_with_each_fresh_one(clock: Clock) -> None:
    served = ServedLane(clock, skipped=1, refuses=lambda each: each.is_skipped)
    served.serve(seconds=10 * MINUTE, publications=each_minute(60, REFUSING, minutes=10))
    assert len(served.requests) <= 600 + 20


@pytest.mark.parametrize("most", [1, 2, 3])
def test_in_the_smallest_runs_neither_kind_starves(clock: Clock, most: int) -> None:
    """Fresh ones that fail arrive all the time; a run comes about once a minute."""
    served = ServedLane(clock, skipped=9, refuses=refuses_all, most=most)
    served.serve(seconds=15 * MINUTE, publications=each_minute(60, REFUSING, minutes=15))
    began = served.clock.now - 10 * MINUTE
    kinds = Counter(is_skipped for at, _, is_skipped in served.requests if at > began)
    assert kinds[True] >= 4
    assert kinds[False] >= 4


def test_an_early_attempt_closes_the_lane_for_no_longer_than_the_pause_lasts(
    clock: Clock,
) -> None:
    served = ServedLane(clock, skipped=0, refuses=refuses_all)
    served.publish(REFUSING)
    served.serve(seconds=0.01)
    lane = served.lane
    lane.stops.runs.pause(8)
    lane.keys.health(WHOLE_LANE).pause(5)
    paused_at = clock.now
    served.publish(REFUSING)
    served.publish(REFUSING)
    served.serve(seconds=5.5)
    assert len(served.requests) == 2
    assert lane.keys.health(WHOLE_LANE).blocked_until == pytest.approx(paused_at + 8)
    assert lane.stops.failures == 1


class TestPauses:
    def failed(self, runs: Runs, *, subscription_id: int, skipped: bool = True) -> RunResult:
        run = RunResult(most=20)
        run.count_failed(
            7, subscription_id=subscription_id, reason="", rules=TEAMFORGE, was_skipped=skipped
        )
        runs.record(run)
        return run

    def resting(self, runs: Runs) -> Any:
        return runs.to_read(most=20, generation=1, is_blocked=False).resting

    def test_each_subscriptions_skipped_ones_rest_by_themselves(self, clock: Clock) -> None:
        runs = Runs()
        for _ in range(6):
            self.failed(runs, subscription_id=1)
        self.failed(runs, subscription_id=2)
        assert self.resting(runs) == {1, 2}
        clock.now += 2
        assert runs.end_pauses_that_are_over()
        assert self.resting(runs) == {1}

    def test_the_pause_of_the_lane_neither_shortens_nor_ends_them(self, clock: Clock) -> None:
        runs = Runs()
        for _ in range(6):
            self.failed(runs, subscription_id=1)
        runs.pause(1, [2])
        runs.flow()
        runs.reach(2)
        runs.block(2)
        assert self.resting(runs) == {1}
        runs.end_pauses()
        assert self.resting(runs) == set()

    def test_a_skipped_delivery_that_is_settled_ends_the_pause(self, clock: Clock) -> None:
        runs = Runs()
        self.failed(runs, subscription_id=1)
        run = self.failed(runs, subscription_id=1)
        run.count_settled(1, was_skipped=True)
        runs.record(run)
        assert self.resting(runs) == set()
