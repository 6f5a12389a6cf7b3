"""The sender of a shard, and the number of senders that share the work."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.models.shard import SHARDS
from delivery.senders.shards.sharing import (
    GATHER_SECONDS,
    MAX_SENDERS,
    SPREAD_SECONDS,
    Member,
    Sharing,
    owner_of,
    shards_of,
    slots_for,
)

shards = st.integers(0, SHARDS - 1)
slots = st.frozensets(st.integers(0, 999), min_size=1, max_size=8)


@given(shards, slots)
def test_each_shard_belongs_to_exactly_one_sender_in_any_order(
    shard: int, some: frozenset[int]
) -> None:
    assert owner_of(shard, sorted(some)) == owner_of(shard, sorted(some, reverse=True)) in some


@given(shards, slots, st.integers(0, 999))
def test_a_new_sender_takes_shards_only_for_itself(
    shard: int, some: frozenset[int], newcomer: int
) -> None:
    assert owner_of(shard, some | {newcomer}) in (owner_of(shard, some), newcomer)


@pytest.mark.parametrize("slots", [(0, 1, 2, 3), (0, 1, 100, 101)])
def test_senders_have_even_shares(slots: tuple[int, ...]) -> None:
    shares = Counter(owner_of(shard, slots) for shard in range(SHARDS))
    assert all(SHARDS / 4 * 0.75 < share < SHARDS / 4 * 1.25 for share in shares.values()), shares


def first_free(number: int, taken: set[int]) -> int:
    slot = next(slot for slot in slots_for(number) if slot not in taken)
    taken.add(slot)
    return slot


def test_the_first_senders_of_all_machines_share_before_the_second_ones() -> None:
    taken: set[int] = set()
    machines = [[first_free(number, taken) for number in range(2)] for _ in range(3)]
    firsts, seconds = zip(*machines, strict=True)
    assert max(firsts) < min(seconds)


def test_a_sender_takes_any_slot_when_those_for_its_number_are_taken() -> None:
    for number in (0, 1, 99):
        assert set(slots_for(number)) == set(range(MAX_SENDERS))


def test_a_sender_that_does_not_share_the_work_has_no_shard() -> None:
    assert shards_of(3, {0, 1}) == frozenset()


def members(*busy: int) -> list[Member]:
    return [Member(slot, percent, sharing=1) for slot, percent in enumerate(busy)]


def meet(sharing: Sharing, *busy: int, now: float) -> int:
    first, *others = members(*busy)
    sharing.update_members(first, others, now=now)
    return len(sharing.slots)


def test_one_sender_has_all_shards_until_it_is_busy() -> None:
    sharing = Sharing()
    assert meet(sharing, 60, 0, 0, now=0) == 1
    assert meet(sharing, 95, 0, 0, now=1) == 1
    assert meet(sharing, 95, 0, 0, now=1 + SPREAD_SECONDS) == 2
    assert meet(sharing, 95, 95, 0, now=10) == 2
    assert meet(sharing, 95, 95, 0, now=10 + SPREAD_SECONDS) == 3


def test_a_short_load_peak_moves_no_shard() -> None:
    sharing = Sharing()
    assert meet(sharing, 95, 0, now=0) == 1
    assert meet(sharing, 40, 0, now=1) == 1
    assert meet(sharing, 95, 0, now=SPREAD_SECONDS) == 1


def test_the_work_is_gathered_when_half_of_the_senders_could_do_it_for_a_while() -> None:
    sharing = Sharing()
    sharing.sharing = 4
    assert meet(sharing, 20, 20, 20, 20, now=0) == 4
    assert meet(sharing, 20, 20, 20, 20, now=GATHER_SECONDS) == 2
    assert meet(sharing, 40, 40, now=GATHER_SECONDS + 1) == 2
    assert meet(sharing, 20, 20, now=100) == 2
    assert meet(sharing, 20, 20, now=100 + GATHER_SECONDS) == 1


def test_the_sender_of_the_lowest_slot_decides_the_number_of_sharers() -> None:
    sharing = Sharing()
    first = Member(0, 10, sharing=3)
    sharing.update_members(
        Member(5, 99, sharing=1), [first, *[Member(slot, 10, 1) for slot in (2, 5, 7)]], now=0
    )
    assert sharing.slots == {0, 2, 5}


def test_a_new_first_sender_keeps_the_previous_decision() -> None:
    sharing = Sharing()
    sharing.update_members(Member(5, 50, sharing=1), [Member(0, 50, sharing=2)], now=0)
    sharing.update_members(Member(5, 50, sharing=2), [Member(6, 50, sharing=2)], now=1)
    assert sharing.slots == {5, 6}
