"""Pauses after failures in a row double, up to the longest, however many failures there are."""

import pytest

from subscriptions.values.schedules import doubling_pause


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 0.5), (2, 1), (3, 2), (7, 30), (1_025, 30), (10**6, 30)]
)
def test_a_pause_doubles_up_to_the_longest(failures: int, seconds: float) -> None:
    assert doubling_pause(0.5, failures=failures, longest=30.0) == seconds
