"""The buffer of a lane with independent messages: bounded by place, and used by free capacity."""

from delivery.senders.lanes.stock import ReadyGroups
from delivery.senders.parcel import Group
from tests.unit.delivery.senders.parcels import parcel


def group(*places: int, size: int = 10) -> Group:
    return Group(1, 0, left=[parcel(place, size=size) for place in places])


def filled(*groups: Group) -> ReadyGroups:
    ready = ReadyGroups()
    for member in groups:
        ready.add(member, member.keys)
    return ready


def test_a_group_is_handed_out_when_one_of_its_endpoints_has_room() -> None:
    ready = filled(group(1), group(1, 2))
    assert ready.take(lambda place: place == 3) is None
    taken = ready.take(lambda place: place == 2)
    assert taken is not None
    assert taken.keys == {1, 2}


def test_groups_with_the_same_endpoints_keep_their_order() -> None:
    first, second = group(1), group(1)
    ready = filled(first, second)
    assert [ready.take(lambda _: True), ready.take(lambda _: True)] == [first, second]
    assert not ready


def test_a_place_is_full_by_groups_or_by_bytes() -> None:
    ready = filled(group(1), group(1), group(2, size=1000), group(3))
    assert ready.full(groups=2, max_bytes=500) == {1, 2}


def test_a_taken_or_removed_delivery_makes_room() -> None:
    ready = filled(group(1), group(1))
    ready.take(lambda _: True)
    assert ready.full(groups=2, max_bytes=500) == set()
    assert len(ready.clear()) == 1
    assert ready.full(groups=1, max_bytes=1) == set()


def test_deliveries_for_closed_endpoints_do_not_count_as_buffered() -> None:
    assert filled(group(1), group(1, 2), group(2)).open_count({1}) == 2
