"""Requests a minute to an endpoint that refuses everything, alone and beside a healthy one."""

import time
from collections import Counter
from typing import Any

import pytest

from delivery.senders.lanes.runs import EARLY_ATTEMPT_SECONDS, Runs
from delivery.senders.lanes.window import WHOLE_LANE
from delivery.senders.parcel import Parcel
from delivery.senders.run_result import RunResult
from delivery.states import OutcomeClass
from tests.unit.delivery.senders.lanes.serving_on_a_clock import (
    HEALTHY,
    MINUTE,
    REFUSING,
    ServedLane,
    SteppedClock,
)
from tests.unit.delivery.senders.parcels import parcel
from tests.unit.delivery.test_verdict import TEAMFORGE, outcome


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    made = SteppedClock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def refuses_all(each: Parcel) -> bool:
    return each.subscription_id == REFUSING


def each_minute(count: int, *ids: int, minutes: int) -> list[tuple[float, int]]:
    """Return so many publications a minute for each of these subscriptions, in turn."""
    gap = MINUTE / count / len(ids)
    return [(gap * turn, ids[turn % len(ids)]) for turn in range(count * minutes * len(ids))]


def test_an_endpoint_that_refuses_everything_gets_half_a_run_a_minute(clock: SteppedClock) -> None:
    served = ServedLane(clock, skipped=300, refuses=refuses_all)
    served.serve(seconds=10 * MINUTE)
    counts = served.requests_a_minute(REFUSING)
    assert counts[0] <= 7 * 250
    # A minute may have the end of a run and the next one.
    assert max(counts[2:]) <= 2 * 250
    assert sum(counts[2:]) <= 250 * len(counts[2:]) * 1.2


@pytest.mark.parametrize("count", [3, 60])
def test_a_healthy_sibling_brings_an_endpoint_that_refuses_everything_no_more_requests(
    clock: SteppedClock, count: int
) -> None:
    served = ServedLane(clock, skipped=300, refuses=refuses_all)
    served.serve(seconds=10 * MINUTE, publications=each_minute(count, 1, 2, minutes=10))
    counts = served.requests_a_minute(REFUSING)
    # Each of its fresh ones once, and half a run of skipped ones a minute.
    assert sum(counts[2:9]) <= 7 * 1.2 * (250 + count)
    assert max(counts[2:]) <= 500 + 2 * count
    # The healthy one waits for none of them for long.
    assert sum(served.requests_a_minute(HEALTHY)) >= 10 * count - count // 3


def test_a_sibling_that_times_out_now_and_then_brings_none_either(clock: SteppedClock) -> None:
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


def test_the_skipped_are_tried_at_once_when_their_own_endpoint_accepts_again(
    clock: SteppedClock,
) -> None:
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


def test_a_poisoned_delivery_is_not_tried_with_each_fresh_one(clock: SteppedClock) -> None:
    served = ServedLane(clock, skipped=1, refuses=lambda each: each.is_skipped)
    served.serve(seconds=10 * MINUTE, publications=each_minute(60, REFUSING, minutes=10))
    assert len(served.requests) <= 600 + 20


@pytest.mark.parametrize("most", [1, 2, 3])
def test_in_the_smallest_runs_neither_kind_starves(clock: SteppedClock, most: int) -> None:
    """Fresh ones that fail arrive all the time; a run comes about once a minute."""
    served = ServedLane(clock, skipped=9, refuses=refuses_all, most=most)
    served.serve(seconds=15 * MINUTE, publications=each_minute(60, REFUSING, minutes=15))
    began = served.clock.now - 10 * MINUTE
    kinds = Counter(is_skipped for at, _, is_skipped in served.requests if at > began)
    assert kinds[True] >= 4
    assert kinds[False] >= 4


def test_an_early_attempt_closes_the_lane_for_no_longer_than_the_pause_lasts(
    clock: SteppedClock,
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
    assert lane.stops.whole.failures == 1


class TestPausesOfSkipped:
    def failed(self, runs: Runs, *, subscription_id: int, skipped: bool = True) -> RunResult:
        run = RunResult(most=20)
        run.count_failed(
            7, subscription_id=subscription_id, reason="", rules=TEAMFORGE, was_skipped=skipped
        )
        runs.record(run)
        return run

    def resting(self, runs: Runs) -> Any:
        return runs.to_read(most=20, generation=1, is_blocked=False).resting

    def test_each_subscriptions_skipped_ones_rest_by_themselves(self, clock: SteppedClock) -> None:
        runs = Runs()
        for _ in range(6):
            self.failed(runs, subscription_id=1)
        self.failed(runs, subscription_id=2)
        assert self.resting(runs) == {1, 2}
        clock.now += 2
        assert runs.end_pauses_that_are_over()
        assert self.resting(runs) == {1}

    def test_the_pause_of_the_lane_neither_shortens_nor_ends_them(
        self, clock: SteppedClock
    ) -> None:
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

    def test_a_skipped_delivery_that_is_settled_ends_the_pause(self, clock: SteppedClock) -> None:
        runs = Runs()
        self.failed(runs, subscription_id=1)
        run = self.failed(runs, subscription_id=1)
        run.count_settled(1, was_skipped=True)
        runs.record(run)
        assert self.resting(runs) == set()
