"""Which sender a lane belongs to."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from delivery.senders.lanes import owner_of

members = st.frozensets(st.integers(1, 4_000_000), min_size=1, max_size=8)


@given(st.integers(1, 2**31), members)
def test_a_lane_belongs_to_exactly_one_of_the_members_whatever_their_order(
    lane_id: int, some: frozenset[int]
) -> None:
    assert owner_of(lane_id, sorted(some)) == owner_of(lane_id, sorted(some, reverse=True)) in some


@given(st.integers(1, 2**31), members, st.integers(1, 4_000_000))
def test_a_member_that_comes_takes_lanes_only_to_itself(
    lane_id: int, some: frozenset[int], newcomer: int
) -> None:
    before, after = owner_of(lane_id, some), owner_of(lane_id, some | {newcomer})
    assert after in (before, newcomer)


def test_members_with_near_ids_get_even_shares_of_near_lanes() -> None:
    shares = Counter(owner_of(lane_id, [4001, 4002, 4003, 4004]) for lane_id in range(1, 4001))
    assert all(850 < share < 1150 for share in shares.values()), shares
