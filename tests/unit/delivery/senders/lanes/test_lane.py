"""A lane in memory: its attempts in flight, the end of its pauses, and its notifications."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from delivery.models import LaneKind
from delivery.senders.entries import Change, EndpointChange, LaneChange
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.lanes.stock import KeyHealth
from delivery.senders.parcel import Group, Parcel
from delivery.states import LaneState, OutcomeClass, Status
from delivery.verdict import NextStep, Verdict
from tests.unit.delivery.senders.parcels import parcel
from tests.unit.delivery.test_verdict import TEAMFORGE, outcome

ROW: dict[str, Any] = {
    "id": 1,
    "kind": LaneKind.TOPIC,
    "state": LaneState.IDLE,
    "reason": "",
    "failures": 0,
    "wait_seconds": None,
    "delivery_id": None,
    "down": None,
    "catch_up_rate": None,
    "run_is_concurrent": True,
    "processing": "CONCURRENT",
    "max_in_flight": 4,
    "max_queued_to_send": 500,
    "refill_level": 100,
    "by_priority": False,
}


def concurrent(**fields: Any) -> SenderLane:
    return SenderLane(ROW | fields)


def down(seconds: float) -> KeyHealth:
    """Return the health of an endpoint that failed long ago, now skipped for so many seconds."""
    now = time.monotonic()
    return KeyHealth(failures=1, failed_at=now - 600, blocked_until=now + seconds)


def begin_outage(lane: SenderLane, at: Parcel, *, seconds: float) -> None:
    lane.keys.add(at.key, down(300))
    lane.stops.report(at, reason="timed out")
    lane.keys.health(at.key).blocked_until = time.monotonic() + seconds


def begun(lane: SenderLane) -> Sequence[Parcel]:
    """Take every parcel that may begin now."""
    found = []
    while (taken := lane.take()) is not None:
        found.append(taken[1])
    return found


def fill(lane: SenderLane, place: int, count: int) -> None:
    ids = range(place * 100, place * 100 + count)
    groups = [Group(id, None, left=[parcel(place, delivery_id=id)]) for id in ids]
    lane.stock.add(groups, more=set())


class TestPauses:
    def test_a_pause_follows_the_row(self) -> None:
        """Otherwise the due row would end the second endpoint's pause again and again."""
        lane = concurrent()
        begin_outage(lane, parcel(1), seconds=-1)
        begin_outage(lane, parcel(2), seconds=300)
        assert lane.stops.pause is None
        assert lane.keys.blocked() == [2]

    def test_a_lane_waits_while_its_first_endpoint_is_down(self) -> None:
        lane = concurrent()
        begin_outage(lane, parcel(1, delivery_id=7), seconds=300)
        begin_outage(lane, parcel(2), seconds=-1)
        assert lane.stops.pause == (7, 1)

    def test_an_unrecorded_failure_belongs_to_another_pause_than_the_row(self) -> None:
        """The row's pause is over then, while the endpoint is down longer."""
        lane = concurrent()
        begin_outage(lane, parcel(1, delivery_id=7), seconds=-1)
        lane.keys.health(1).block(300)
        assert lane.stops.pause == (7, 2)

    def test_a_woken_lane_does_not_wait(self) -> None:
        lane = concurrent()
        begin_outage(lane, parcel(1), seconds=300)
        lane.look_again()
        assert lane.stops.pause is None
        assert lane.keys.blocked() == []

    @pytest.mark.parametrize("kind", [LaneKind.TOPIC, LaneKind.QUEUE])
    def test_each_endpoint_that_was_down_for_the_last_sender_is_waited_for(
        self, kind: LaneKind
    ) -> None:
        found = [left_down(3, seconds=60), left_down(4, seconds=-1), left_down(5, seconds=30)]
        lane = concurrent(kind=kind, state=LaneState.BLOCKED, delivery_id=7, down=found)
        assert lane.keys.blocked() == [3, 5]
        assert lane.stops.down == [3, 4, 5]
        # The blocked endpoint is tried with one message.
        fill(lane, 4, 5)
        assert len(begun(lane)) == 1

    def test_the_retry_lane_keeps_its_own_schedule(self) -> None:
        lane = concurrent(kind=LaneKind.RETRY, down=[left_down(3, seconds=60)])
        assert lane.keys.blocked() == []

    def test_a_lane_that_was_stopped_flows_if_no_endpoint_is_down(self) -> None:
        stopped = {"state": LaneState.BLOCKED, "delivery_id": 7}
        (change,) = concurrent(**stopped).stops.begin()
        assert isinstance(change, LaneChange)
        assert change.state == LaneState.IDLE
        assert concurrent(**stopped, down=[left_down(3, seconds=60)]).stops.begin() == []
        # An ordered lane left this row: the endpoint is no reason to wait.
        was_serial = concurrent(**stopped, run_is_concurrent=False, down=[left_down(3, seconds=60)])
        assert was_serial.keys.blocked() == []
        assert was_serial.stops.begin() != []
        # Yet it is DOWN until it accepts a message.
        assert was_serial.stops.end(3) == [EndpointChange(lane_id=1, subscription_id=3)]

    def test_a_lane_that_flows_waits_for_its_endpoints_and_is_not_blocked(self) -> None:
        lane = concurrent(down=[left_down(3, seconds=60), left_down(4, seconds=-1)])
        assert lane.keys.blocked() == [3]
        assert not lane.stops.is_blocked
        assert lane.stops.end(4) == [EndpointChange(lane_id=1, subscription_id=4)]
        assert lane.stops.end(4) == []


def left_down(subscription_id: int, *, seconds: float) -> dict[str, Any]:
    """Return an endpoint's row as a beginning lane reads it."""
    return {
        "subscription_id": subscription_id,
        "delivery_id": 7,
        "reason": "timed out",
        "failures": 2,
        "wait_seconds": seconds,
    }


class TestReportingEndpoints:
    """An endpoint's state is reported unless another attempt in flight there may differ."""

    def fail(self, lane: SenderLane, failed_parcel: Parcel) -> Sequence[Change]:
        lane.keys.add(failed_parcel.key, down(300))
        return lane.stops.report(failed_parcel, reason="timed out")

    def test_the_last_may_be_dropped(self) -> None:
        lane, failing, dropped = concurrent(), parcel(1, delivery_id=7), parcel(1, delivery_id=8)
        lane.in_flight.add(parcel(1, delivery_id=8), 1)
        assert self.fail(lane, failing) == []
        lane.in_flight.remove(parcel(1, delivery_id=8))
        change, endpoint = lane.stops.report(dropped)
        assert isinstance(change, LaneChange)
        assert change.state == LaneState.BLOCKED
        assert isinstance(endpoint, EndpointChange)
        assert endpoint.subscription_id == 1
        for reported in (change, endpoint):
            assert (reported.delivery_id, reported.reason, reported.failures) == (7, "timed out", 1)
            assert reported.wait_seconds == pytest.approx(300, abs=5)

    def test_a_queue_lane_reports_only_the_endpoint(self) -> None:
        lane = concurrent(kind=LaneKind.QUEUE)
        (change,) = self.fail(lane, parcel(1, delivery_id=7))
        assert (isinstance(change, EndpointChange), change.delivery_id) == (True, 7)
        (change,) = lane.stops.end(1)
        assert change == EndpointChange(lane_id=lane.id, subscription_id=1)

    @pytest.mark.parametrize("kind", [LaneKind.RETRY, LaneKind.CALLBACK])
    def test_callback_and_retry_lanes_report_nothing(self, kind: LaneKind) -> None:
        origin = "https://publisher.example" if kind == LaneKind.CALLBACK else ""
        assert self.fail(concurrent(kind=kind), replace(parcel(1), origin=origin)) == []

    def test_several_endpoints_are_reported_and_removed_one_by_one(self) -> None:
        lane = concurrent()
        self.fail(lane, parcel(1, delivery_id=7))
        change, endpoint = self.fail(lane, parcel(2, delivery_id=8))
        # The lane's row names the endpoint that is down longest.
        assert change.delivery_id == 7
        assert endpoint.delivery_id == 8
        # Nothing waits for the first any more, so it stops nothing; it stays DOWN.
        (change,) = lane.stops.forget([1], gone=[])
        assert change.delivery_id == 8
        assert lane.stops.down == [2]
        assert lane.stops.end(1) == [EndpointChange(lane_id=lane.id, subscription_id=1)]

    def test_the_last_may_succeed(self) -> None:
        lane = concurrent()
        lane.in_flight.add(parcel(1, delivery_id=8), 1)
        self.fail(lane, parcel(1, delivery_id=7))
        lane.in_flight.remove(parcel(1, delivery_id=8))
        lane.keys.health(1).accepted()
        assert lane.stops.report(parcel(1, delivery_id=8)) == []
        assert not lane.stops.is_blocked

    def test_a_dropped_delivery_reports_nothing(self) -> None:
        assert concurrent().stops.report(parcel(1)) == []


@pytest.mark.parametrize(
    ("rate", "executed", "rows"),
    [(None, True, 64), (50, True, 25), (0.1, True, 1), (1_000, True, 64), (50, False, 500)],
)
def test_an_ordered_lane_executes_the_scripts_of_half_a_second_of_its_pace(
    rate: float | None, executed: bool, rows: int
) -> None:
    lane = concurrent(processing="", run_is_concurrent=False, catch_up_rate=rate)
    lane.note_read(executed_scripts=executed)
    assert lane.rows(500) == rows


def test_notifications_are_checked_at_once() -> None:
    lane = concurrent()
    lane.notify()
    assert lane.notified.is_set()
    assert lane.changed.is_set()


class TestMaxInFlight:
    def test_a_slow_endpoint_leaves_the_others_their_part(self) -> None:
        lane = concurrent()
        fill(lane, 1, 10)
        fill(lane, 2, 10)
        first = begun(lane)
        assert Counter(parcel_begun.key for parcel_begun in first) == {1: 2, 2: 2}
        for parcel_read in first:
            if parcel_read.key == 2:
                lane.leave(parcel_read)
        assert [parcel_begun.key for parcel_begun in begun(lane)] == [2, 2]

    def test_a_single_endpoint_has_all_slots(self) -> None:
        lane = concurrent()
        fill(lane, 1, 10)
        assert len(begun(lane)) == 4

    def test_an_endpoint_that_is_down_has_no_share(self) -> None:
        lane = concurrent()
        lane.keys.add(2, down(300))
        fill(lane, 1, 10)
        fill(lane, 2, 10)
        assert [parcel_begun.key for parcel_begun in begun(lane)] == [1] * 4

    def test_each_has_one_though_they_are_more_than_may_be_in_flight(self) -> None:
        lane = concurrent(max_in_flight=2)
        for place in (1, 2, 3):
            fill(lane, place, 5)
        assert [parcel_begun.key for parcel_begun in begun(lane)] == [1, 2]

    @pytest.mark.parametrize("kind", [LaneKind.QUEUE, LaneKind.CALLBACK])
    def test_where_an_endpoint_has_a_limit_of_its_own_it_keeps_it(self, kind: LaneKind) -> None:
        lane = concurrent(kind=kind)
        fill(lane, 1, 50)
        fill(lane, 2, 50)
        assert Counter(parcel_begun.key for parcel_begun in begun(lane)) == {1: 16, 2: 16}


def test_buffered_deliveries_are_bounded_over_all_endpoints_by_bytes_too() -> None:
    lane = concurrent()
    for place in (1, 2):
        lane.stock.add([Group(place, None, left=[parcel(place, size=600)])], more=set())
        lane.keys.health(place)
    assert lane.stock.closed(rows=100, max_bytes=1_000) == {1, 2}


@pytest.mark.parametrize("settled", [None, Status.DELIVERED, Status.REJECTED])
def test_an_endpoint_known_only_from_its_row_is_down_until_it_is_reached(
    settled: Status | None,
) -> None:
    """The lane was served in order, so nothing waits; a delivery that is not sent shows nothing."""
    down = {"subscription_id": 1, "delivery_id": 7, "failures": 3, "wait_seconds": 40.0}
    lane = concurrent(
        state=LaneState.BLOCKED, run_is_concurrent=False, down=[down | {"reason": "500"}]
    )
    lane.stops.begin()
    # Overdue, or its run is stale.
    assert lane.stops.report(parcel(1)) == []
    # Its script fails.
    script = outcome(OutcomeClass.SCRIPT)
    failed = lane.window.judge(script, TEAMFORGE, parcel(1).tries)
    assert lane.stops.record_outcome(parcel(1), script, failed, TEAMFORGE) == []
    if settled is not None:
        verdict = Verdict(status=settled, step=NextStep.NEXT)
        answer = outcome(OutcomeClass.SUCCESS)
        (up,) = lane.stops.record_outcome(parcel(1), answer, verdict, TEAMFORGE)
        assert up == EndpointChange(lane_id=1, subscription_id=1)
