"""Waits: of a policy's retries, if none is late, and of tries after failures in a row."""

from collections.abc import Sequence

# 2^30 of the shortest unit are three years, so more doublings only make larger numbers. Without a
# bound, a float overflows after 1,024 failures.
_MOST_DOUBLINGS = 30


def offset_seconds(
    retry: int, *, seconds: float, is_exponential: bool, waits: Sequence[float] = ()
) -> float:
    """Return the offset of a retry from the first failure; the first retry is 1.

    The exponential offsets are Workfront's, `(2^n - 1)` units: each wait is twice as long as the
    previous. With listed `waits` each retry has a wait, and later retries have the last.
    """
    if waits:
        return sum(waits[:retry]) + waits[-1] * max(retry - len(waits), 0)
    return seconds * (2.0 ** min(retry, _MOST_DOUBLINGS) - 1) if is_exponential else seconds * retry


def doubling_pause(first: float, *, failures: int, longest: float) -> float:
    """Return the pause after so many failures in a row: `first`, then twice the previous."""
    return min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest)
