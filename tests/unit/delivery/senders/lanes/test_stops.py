"""The stops of an ordered lane: causes, durations, and the row to write."""

import math
from typing import Any

import pytest

from delivery.senders.entries import Change, LaneChange
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.lanes.window import WHOLE_LANE
from delivery.states import LaneState, OutcomeClass, Status
from delivery.verdict import NextStep, Verdict
from tests.unit.delivery.senders.lanes.test_stock import fill, serial
from tests.unit.delivery.senders.parcels import parcel, run_of
from tests.unit.delivery.test_verdict import STRICT, TEAMFORGE, outcome

BLOCKED: dict[str, Any] = {
    "state": LaneState.BLOCKED,
    "delivery_id": 7,
    "failures": 3,
    "wait_seconds": -1.0,
}


def record(lane: SenderLane, kind: OutcomeClass, *, rules: Any = STRICT) -> list[LaneChange]:
    sent, found = parcel(1, delivery_id=7), outcome(kind)
    return lanes(
        lane.stops.record_outcome(sent, found, lane.window.judge(found, rules, sent.tries), rules)
    )


def lanes(changes: list[Change]) -> list[LaneChange]:
    """Return the changes of an ordered lane, which include the endpoint's state."""
    found = [change for change in changes if isinstance(change, LaneChange)]
    assert found == changes
    return found


def test_a_block_ends_the_run_and_invalidates_a_pending_read() -> None:
    lane = serial()
    fill(lane, 3)
    generation = lane.stock.generation
    (change,) = record(lane, OutcomeClass.TIMEOUT)
    assert (change.state, change.delivery_id, change.ends_run) == (LaneState.BLOCKED, 7, True)
    assert not lane.stock
    assert lane.stock.generation != generation
    assert lane.take() is None


def test_the_pause_doubles_with_each_failure_in_a_row() -> None:
    lane = serial(**BLOCKED)
    (change,) = record(lane, OutcomeClass.TIMEOUT)
    assert change.failures == 4
    assert change.wait_seconds == pytest.approx(8, rel=0.15)


def test_a_pause_is_recognised_by_the_delivery_and_failures_of_its_row() -> None:
    """Until the row is written it has the time of the last pause, which would end this one."""
    lane = serial(**BLOCKED)
    assert lane.stops.pause is None
    (change,) = record(lane, OutcomeClass.TIMEOUT)
    assert lane.stops.pause == (change.delivery_id, change.failures) == (7, 4)


def test_a_suspension_is_recognised_by_its_row() -> None:
    lane = serial(**BLOCKED | {"state": LaneState.SUSPENDED, "wait_seconds": None})
    assert lane.stops.pause == (7, 3)
    assert lane.stops.suspended_left == math.inf


def test_a_settled_delivery_frees_the_lane_and_its_run_continues() -> None:
    lane = serial(**BLOCKED)
    (change,) = record(lane, OutcomeClass.SUCCESS)
    assert (change.state, change.ends_run) == (LaneState.IDLE, False)
    assert lane.stops.whole.failures == 0
    assert record(lane, OutcomeClass.SUCCESS) == []


def test_a_skipped_delivery_neither_blocks_nor_frees_the_lane() -> None:
    lane = serial(**BLOCKED)
    assert record(lane, OutcomeClass.SERVER_ERROR, rules=TEAMFORGE) == []
    assert lane.stops.whole.failures == 3
    assert lane.stops.is_blocked


def test_a_run_in_which_new_deliveries_failed_and_none_settled_blocks_the_lane() -> None:
    lane = serial()
    batch = run_of(fresh=2)
    for id in (7, 8):
        batch.count_failed(id, subscription_id=1, reason="500", rules=TEAMFORGE)
    (change,) = lanes(lane.stops.record_run(batch))
    assert (change.state, change.delivery_id) == (LaneState.BLOCKED, 7)


def test_skipped_ones_that_fail_again_pause_by_themselves() -> None:
    lane = serial()
    batch = run_of(fresh=0, skipped=1)
    batch.count_failed(7, subscription_id=1, reason="500", rules=TEAMFORGE, was_skipped=True)
    assert lane.stops.record_run(batch) == []
    assert lane.run_to_read().limits(10).resting == {1}
    # A pause of the whole lane does not end theirs.
    record(lane, OutcomeClass.TIMEOUT)
    assert lane.run_to_read().limits(10).resting == {1}
    # An attempt that is accepted there does.
    answer = outcome(OutcomeClass.SUCCESS)
    verdict = lane.window.judge(answer, TEAMFORGE, parcel(1).tries)
    lane.stops.record_outcome(parcel(1), answer, verdict, TEAMFORGE)
    assert lane.run_to_read().limits(10).resting == set()


def test_a_suspended_lane_sends_nothing_and_its_head_does_not_free_it() -> None:
    lane = serial(**BLOCKED)
    fill(lane, 3)
    verdict = Verdict(status=Status.REJECTED, step=NextStep.SUSPEND)
    found = outcome(OutcomeClass.CLIENT_ERROR)
    assert lane.stops.record_outcome(parcel(1), found, verdict, TEAMFORGE) == []
    change = lane.stops.suspend(7, 1, reason="404", wait_seconds=None)
    assert (change.state, change.failures, change.wait_seconds) == (LaneState.SUSPENDED, 4, None)
    fill(lane, 3)
    assert lane.take() is None


def test_a_lane_resumed_by_a_person_is_blocked_until_a_delivery_succeeds() -> None:
    lane = serial(state=LaneState.SUSPENDED, delivery_id=7)
    lane.stops.resume_blocked(7, reason="404")
    assert lane.keys.blocked() == []
    (change,) = record(lane, OutcomeClass.SUCCESS)
    assert change.state == LaneState.IDLE


def test_without_waiting_deliveries_nothing_stops_the_lane_and_a_long_run_is_emptied() -> None:
    lane = serial(**BLOCKED)
    lane.stock.add([], more=set())
    run, change = lane.end_idle_stop()
    assert (run, change.state) == (lane.run(), LaneState.IDLE)  # type: ignore[union-attr]
    assert lane.end_idle_stop() == []
    fill(lane, 9)
    lane.run()
    while (taken := lane.take()) is not None:
        lane.leave(taken[1])
    lane.stock.add([], more=set())
    assert lane.end_idle_stop() == [lane.run()]


def test_a_pause_that_is_over_is_followed_by_a_run_and_not_by_the_end_of_the_stop() -> None:
    """The pause may end while an early attempt is being read that finds nothing."""
    lane = serial(**BLOCKED)
    lane.stops.runs.pause(60)
    lane.stock.add([], more=set())
    assert lane.end_idle_stop() == []
    lane.stops.runs.pause(-1)
    assert lane.end_idle_stop() == []
    assert lane.seconds_to_wait(5) == 0
    lane.record_time()
    assert lane.notified.is_set()


def test_an_early_attempt_that_finds_nothing_is_read_again_later() -> None:
    lane = serial(**BLOCKED)
    lane.stops.runs.pause(60)
    assert lane.stops.record_run(lane.run_to_read()) == []
    assert lane.keys.blocked() == [WHOLE_LANE]
    assert lane.stops.whole.failures == 3


def test_a_pausing_lane_is_not_reported_as_flowing() -> None:
    lane = serial(**BLOCKED | {"wait_seconds": 60.0})
    assert lane.end_idle_stop() == []
    assert lane.keys.blocked() == [WHOLE_LANE]
