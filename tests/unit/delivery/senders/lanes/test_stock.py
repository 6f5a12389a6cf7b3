"""Deliveries in memory: read ahead in order, by share where independent, and nothing stale."""

from typing import Any

from delivery.models import LaneKind
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.lanes.stock import ReadyGroups
from delivery.senders.lanes.window import WHOLE_LANE
from delivery.senders.parcel import Group
from delivery.senders.run_result import RunResult
from delivery.states import LaneState
from tests.unit.delivery.senders.lanes.test_lane import ROW
from tests.unit.delivery.senders.parcels import parcel, run_of
from tests.unit.delivery.test_verdict import TEAMFORGE

SERIAL: dict[str, Any] = ROW | {"processing": "SERIAL", "run_is_concurrent": False}


def serial(**fields: Any) -> SenderLane:
    return SenderLane(SERIAL | fields)


def fill(lane: SenderLane, count: int, *, is_full: bool = True) -> RunResult:
    """Add so many deliveries to the lane, as if it had read them."""
    batch = run_of(fresh=count)
    groups = [
        Group(id, None, [parcel(1, delivery_id=id)], lane.stock.generation, batch)
        for id in range(count)
    ]
    lane.stock.add(groups, more={WHOLE_LANE}, is_full=is_full)
    return batch


def send_all(lane: SenderLane) -> None:
    while (taken := lane.take()) is not None:
        lane.leave(taken[1])


def wants_more(lane: SenderLane, *, rows: int = 10) -> bool:
    return lane.wants_more(lane.stock.closed(rows=rows, max_bytes=10_000), rows=rows)


def test_a_lane_that_begins_reads_at_once() -> None:
    assert wants_more(serial())
    assert wants_more(SenderLane(ROW))
    assert wants_more(SenderLane(ROW | {"kind": LaneKind.RETRY}))


def test_an_ordered_lane_reads_ahead_near_the_end_of_a_full_run() -> None:
    lane = serial()
    fill(lane, 10)
    assert not wants_more(lane)
    for _ in range(5):
        lane.take()
        lane.leave(parcel(1))
    assert wants_more(lane)


def test_an_ordered_lane_does_not_read_ahead_after_the_last_delivery_although_notified() -> None:
    lane = serial()
    fill(lane, 3, is_full=False)
    lane.notify()
    assert not wants_more(lane)


def test_an_ordered_lane_does_not_read_ahead_while_its_run_makes_no_progress() -> None:
    lane = serial()
    batch = fill(lane, 4)
    batch.count_failed(7, subscription_id=1, reason="500", rules=TEAMFORGE)
    assert not wants_more(lane)
    batch.count_settled(1, was_skipped=False)
    assert wants_more(lane)


def test_an_ordered_lane_does_not_read_ahead_of_an_unrecorded_failure() -> None:
    """Recording it may take longer than the following pause."""
    lane = serial()
    fill(lane, 10)
    lane.take()
    lane.stock.forget()
    assert not lane.stock.wants_more(set(), rows=10, is_sending=True, is_notified=True)
    assert lane.stock.wants_more(set(), rows=10, is_sending=False, is_notified=False)


def test_a_run_leaves_nothing_if_it_had_all_of_the_lane_and_all_of_it_was_settled() -> None:
    batch = run_of(fresh=1, skipped=1)
    found = []
    for was_skipped in (False, True):
        batch.count_settled(1, was_skipped=was_skipped)
        found.append(batch.leaves_nothing)
    assert found == [False, True]
    part = run_of(fresh=1, is_cut=True)
    part.count_settled(1, was_skipped=False)
    assert not part.leaves_nothing


def test_a_run_of_which_one_delivery_failed_or_was_set_aside_leaves_something() -> None:
    failed, aside = (run_of(fresh=2) for _ in range(2))
    failed.count_failed(7, subscription_id=1, reason="500", rules=TEAMFORGE)
    aside.set_aside()
    for batch in (failed, aside):
        batch.count_settled(1, was_skipped=False)
        assert not batch.left
        assert not batch.leaves_nothing


def test_a_lane_whose_run_left_nothing_reads_again_when_notified() -> None:
    lane = serial()
    fill(lane, 2, is_full=False)
    send_all(lane)
    assert wants_more(lane)
    lane.stock.exhaust()
    assert not wants_more(lane)
    lane.notify()
    assert wants_more(lane)


def test_a_lane_that_forgets_its_run_reads_again_though_nothing_was_left() -> None:
    lane = serial()
    fill(lane, 1, is_full=False)
    send_all(lane)
    lane.stock.exhaust()
    lane.nudge()
    lane.look_again()
    assert wants_more(lane)


def test_a_blocked_lane_reads_nothing_although_notified() -> None:
    lane = serial(state=LaneState.BLOCKED, delivery_id=7, failures=1, wait_seconds=60.0)
    lane.notify()
    assert not wants_more(lane)


def test_an_ordered_lane_sends_one_at_a_time_in_the_order_read() -> None:
    lane = serial()
    fill(lane, 2)
    first = lane.take()
    assert first is not None
    assert lane.take() is None
    lane.leave(first[1])
    second = lane.take()
    assert second is not None
    assert (first[1].delivery_id, second[1].delivery_id) == (0, 1)


def test_the_run_of_an_ordered_lane_names_deliveries_in_flight_before_those_read() -> None:
    lane = serial()
    fill(lane, 3)
    lane.take()
    assert lane.run([parcel(1, delivery_id=9)]).ids == (0, 1, 2, 9)


def test_the_run_of_other_lanes_names_only_deliveries_in_flight() -> None:
    lane = SenderLane(ROW)
    lane.stock.add([Group(id, None, [parcel(1, delivery_id=id)]) for id in range(3)], more=set())
    taken = lane.take()
    assert taken is not None
    lane.in_flight.add(taken[1], 1)
    assert lane.run().ids == (taken[1].delivery_id,)
    assert lane.run().is_concurrent


def test_a_wake_up_and_a_discarded_run_invalidate_a_pending_read() -> None:
    lane = serial()
    before, _ = lane.stock.begin_reading()
    lane.nudge()
    woken, _ = lane.stock.begin_reading()
    lane.stock.forget()
    assert before != woken != lane.stock.generation


def test_a_discarded_delivery_leaves_memory_unless_it_is_in_flight() -> None:
    lane = serial()
    fill(lane, 3)
    lane.take()
    assert lane.stock.forget()
    assert lane.stock.begin_reading()[1] == {0}


def test_held_deliveries_are_set_aside_and_the_others_stay() -> None:
    lane = serial()
    batch = run_of(fresh=4)
    parcels = [parcel(place, delivery_id=id) for id, place in enumerate([1, 2, 1, 2])]
    lane.stock.add(
        [Group(each.message_id, None, [each], lane.stock.generation, batch) for each in parcels],
        more=set(),
    )
    lane.stock.set_aside(lambda each: each.subscription_id == 1)
    assert [each.delivery_id for each in lane.stock.parcels()] == [1, 3]
    assert batch.left == 2
    assert lane.stock.begin_reading()[1] == {1, 3}


def test_a_group_member_that_another_endpoint_may_take_is_not_set_aside() -> None:
    lane = SenderLane(ROW | {"kind": LaneKind.QUEUE})
    lane.stock.add(
        [Group(1, 0, [parcel(1), parcel(2)]), Group(2, 0, [parcel(1, delivery_id=9)])], more=set()
    )
    lane.stock.set_aside(lambda each: each.subscription_id == 1)
    assert {each.delivery_id for each in lane.stock.parcels()} == {1, 2}


def test_a_stale_run_sends_nothing_more_and_stays_recorded_until_its_attempt_ends() -> None:
    lane = serial()
    fill(lane, 3)
    taken = lane.take()
    assert taken is not None
    lane.nudge()
    lane.leave(taken[1])
    assert lane.take() is None
    assert lane.run().ids == (1, 2)
    assert lane.look_again()
    assert lane.run().ids == ()


def group_of(*places: int, size: int = 10) -> Group:
    return Group(1, 0, left=[parcel(place, size=size) for place in places])


def ready_of(*groups: Group) -> ReadyGroups:
    ready = ReadyGroups()
    for each in groups:
        ready.add(each, each.keys)
    return ready


def test_a_group_is_handed_out_when_one_of_its_endpoints_has_room() -> None:
    ready = ready_of(group_of(1), group_of(1, 2))
    assert ready.take(lambda place: place == 3) is None
    taken = ready.take(lambda place: place == 2)
    assert taken is not None
    assert taken.keys == {1, 2}


def test_groups_with_the_same_endpoints_keep_their_order() -> None:
    first, second = group_of(1), group_of(1)
    ready = ready_of(first, second)
    assert [ready.take(lambda _: True), ready.take(lambda _: True)] == [first, second]
    assert not ready


def test_a_place_is_full_by_groups_or_by_bytes() -> None:
    ready = ready_of(group_of(1), group_of(1), group_of(2, size=1000), group_of(3))
    assert ready.full(groups=2, max_bytes=500) == {1, 2}


def test_a_taken_or_removed_delivery_makes_room() -> None:
    ready = ready_of(group_of(1), group_of(1))
    ready.take(lambda _: True)
    assert ready.full(groups=2, max_bytes=500) == set()
    assert len(ready.clear()) == 1
    assert ready.full(groups=1, max_bytes=1) == set()


def test_deliveries_for_closed_endpoints_do_not_count_as_buffered() -> None:
    assert ready_of(group_of(1), group_of(1, 2), group_of(2)).open_count({1}) == 2
