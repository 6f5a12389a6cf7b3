"""Percentiles estimated from counts are off by a fifth at most."""

from bisect import bisect_right
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.maintenance.durations import BOUNDS_MS, percentile


def step(milliseconds: int) -> int:
    """As PostgreSQL's width_bucket has it."""
    return bisect_right(BOUNDS_MS, milliseconds)


@given(
    st.lists(st.integers(min_value=0, max_value=300_000), min_size=1), st.sampled_from([0.5, 0.95])
)
def test_an_estimate_is_off_by_a_fifth_at_most(durations: list[int], share: float) -> None:
    exact = sorted(durations)[max(-int(-share * len(durations) // 1), 1) - 1]
    estimate = percentile(Counter(map(step, durations)), share)
    assert estimate == pytest.approx(exact, rel=0.22)


def test_a_few_milliseconds_are_shown_exactly() -> None:
    assert [percentile({step(duration): 1}, 0.5) for duration in range(5)] == [0, 1, 2, 3, 4]


def test_without_values_there_is_no_percentile() -> None:
    assert percentile({}, 0.95) is None
    assert percentile({3: 0}, 0.95) is None


def test_a_percentile_above_all_bounds_is_the_last_bound() -> None:
    assert percentile({step(3_600_000): 1}, 0.95) == round(BOUNDS_MS[-1])
