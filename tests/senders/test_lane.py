"""A lane in memory: who gets its places, when its pauses are over, and what wakes it."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from delivery.models import LaneKind
from delivery.senders.entries import LaneChange
from delivery.senders.keys import Health
from delivery.senders.lane import Lane
from delivery.senders.parcel import Group, Parcel
from delivery.states import LaneState
from tests.senders.parcels import parcel

ROW: dict[str, Any] = {
    "id": 1,
    "kind": LaneKind.TOPIC,
    "state": LaneState.IDLE,
    "reason": "",
    "failures": 0,
    "wait_seconds": None,
    "delivery_id": None,
    "head_subscription_id": None,
    "run_is_concurrent": True,
    "processing": "CONCURRENT",
    "max_in_flight": 4,
    "max_queued_to_send": 500,
    "refill_level": 100,
}


def concurrent(**fields: Any) -> Lane:
    return Lane(ROW | fields)


def down(seconds: float) -> Health:
    """An endpoint that failed long ago, and is left alone for so many seconds from now."""
    now = time.monotonic()
    return Health(failures=1, failed_at=now - 600, blocked_until=now + seconds)


def begin_outage(lane: Lane, at: Parcel, *, seconds: float) -> None:
    lane.keys.add(at.place, down(300))
    lane.stops.tell(at, reason="timed out")
    lane.keys.health(at.place).blocked_until = time.monotonic() + seconds
    lane.stops.change()
    lane.stops.told()


def begun(lane: Lane) -> Sequence[Parcel]:
    """Take what may be begun now."""
    found = []
    while (taken := lane.take()) is not None:
        found.append(taken[1])
    return found


def fill(lane: Lane, place: int, count: int) -> None:
    ids = range(place * 100, place * 100 + count)
    groups = [Group(id, None, left=[parcel(place, delivery_id=id)]) for id in ids]
    lane.stock.add(groups, more=set())


class TestPauses:
    def test_it_waits_for_what_its_row_says_and_no_other_place(self) -> None:
        """Else the row, whose time has come, would end the second's pause again and again."""
        lane = concurrent()
        begin_outage(lane, parcel(1), seconds=-1)
        begin_outage(lane, parcel(2), seconds=300)
        assert not lane.stops.is_pausing
        assert lane.keys.blocked() == [2]

    def test_it_waits_while_the_first_is_down(self) -> None:
        lane = concurrent()
        begin_outage(lane, parcel(1), seconds=300)
        begin_outage(lane, parcel(2), seconds=-1)
        assert lane.stops.is_pausing

    def test_a_failure_that_was_not_told_moves_nothing(self) -> None:
        """What the row says is over then, while the endpoint is down longer."""
        lane = concurrent()
        begin_outage(lane, parcel(1), seconds=-1)
        lane.keys.health(1).blocked_until = time.monotonic() + 300
        assert not lane.stops.is_pausing

    def test_who_is_woken_waits_no_more(self) -> None:
        lane = concurrent()
        begin_outage(lane, parcel(1), seconds=300)
        lane.look_again()
        assert not lane.stops.is_pausing
        assert lane.keys.blocked() == []

    def test_what_the_last_sender_left_is_waited_for(self) -> None:
        row = {"state": LaneState.BLOCKED, "delivery_id": 7, "head_subscription_id": 3, "wait_seconds": 60.0}
        assert concurrent(**row).stops.is_pausing
        assert not concurrent(**row | {"wait_seconds": -1.0}).stops.is_pausing


class TestTelling:
    """What one attempt shows of an endpoint is told when no other that may tell otherwise is under way there."""

    def fail(self, lane: Lane, one: Parcel) -> Sequence[LaneChange]:
        lane.keys.add(one.place, down(300))
        return lane.stops.tell(one, reason="timed out")

    def test_the_last_may_be_dropped(self) -> None:
        lane, failing, dropped = concurrent(), parcel(1, delivery_id=7), parcel(1, delivery_id=8)
        lane.under_way.add(parcel(1, delivery_id=8), 1)
        assert self.fail(lane, failing) == []
        lane.under_way.remove(parcel(1, delivery_id=8))
        (change,) = lane.stops.tell(dropped)
        assert (change.state, change.delivery_id, change.reason) == (LaneState.BLOCKED, 7, "timed out")
        assert change.wait_seconds == pytest.approx(300, abs=5)

    def test_the_last_may_succeed(self) -> None:
        lane = concurrent()
        lane.under_way.add(parcel(1, delivery_id=8), 1)
        self.fail(lane, parcel(1, delivery_id=7))
        lane.under_way.remove(parcel(1, delivery_id=8))
        lane.keys.health(1).accepted()
        assert lane.stops.tell(parcel(1, delivery_id=8)) == []
        assert not lane.stops.is_blocked

    def test_what_is_dropped_shows_nothing(self) -> None:
        assert concurrent().stops.tell(parcel(1)) == []


def test_news_are_looked_at_at_once() -> None:
    lane = concurrent()
    lane.bring_news()
    assert lane.news.is_set()
    assert lane.changed.is_set()


class TestPlaces:
    def test_a_slow_endpoint_leaves_the_others_their_part(self) -> None:
        lane = concurrent()
        fill(lane, 1, 10)
        fill(lane, 2, 10)
        first = begun(lane)
        assert Counter(one.place for one in first) == {1: 2, 2: 2}
        for one in first:
            if one.place == 2:
                lane.leave(one)
        assert [one.place for one in begun(lane)] == [2, 2]

    def test_one_that_is_alone_has_all_of_them(self) -> None:
        lane = concurrent()
        fill(lane, 1, 10)
        assert len(begun(lane)) == 4

    def test_one_that_is_down_has_no_part(self) -> None:
        lane = concurrent()
        lane.keys.add(2, down(300))
        fill(lane, 1, 10)
        fill(lane, 2, 10)
        assert [one.place for one in begun(lane)] == [1] * 4

    def test_each_has_one_though_they_are_more_than_the_places(self) -> None:
        lane = concurrent(max_in_flight=2)
        for place in (1, 2, 3):
            fill(lane, place, 5)
        assert [one.place for one in begun(lane)] == [1, 2]

    @pytest.mark.parametrize("kind", [LaneKind.QUEUE, LaneKind.CALLBACK])
    def test_where_an_endpoint_has_its_own_number_of_places_it_keeps_it(self, kind: LaneKind) -> None:
        lane = concurrent(kind=kind)
        fill(lane, 1, 50)
        fill(lane, 2, 50)
        assert Counter(one.place for one in begun(lane)) == {1: 16, 2: 16}


def test_what_is_held_is_bounded_over_all_endpoints_by_bytes_too() -> None:
    lane = concurrent()
    for place in (1, 2):
        lane.stock.add([Group(place, None, left=[parcel(place, size=600)])], more=set())
        lane.keys.health(place)
    assert lane.stock.closed(rows=100, max_bytes=1_000) == {1, 2}
