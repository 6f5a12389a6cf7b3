"""What notifications say, and how they are read."""

from hypothesis import given
from hypothesis import strategies as st

from delivery.senders.listen import GAP, Call, understand
from delivery.wake import payloads

ids = st.frozensets(st.integers(1, 2**40), max_size=2_000)


@given(ids, ids, st.booleans())
def test_what_is_told_is_what_is_understood(
    lanes: frozenset[int], nudged: frozenset[int], is_change: bool
) -> None:
    words = {f"work {id}" for id in lanes} | {f"nudge {id}" for id in nudged}
    call = understand(payloads(words | ({"changed"} if is_change else set())))
    assert (call.lanes, call.nudged, call.is_change) == (lanes, nudged, is_change)


@given(ids)
def test_a_payload_is_shorter_than_postgresql_allows(lanes: frozenset[int]) -> None:
    assert all(len(payload) < 8000 for payload in payloads({f"work {id}" for id in lanes}))


def test_after_a_gap_every_lane_is_to_look() -> None:
    assert understand([GAP, "work 1"]) == Call(lanes=frozenset({1}), is_gap=True)
