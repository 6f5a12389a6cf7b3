"""Durations of attempts as counts per step: small to store, simple to add, good for percentiles."""

from collections.abc import Mapping

_STEPS_PER_DECADE = 6
# From a millisecond to five minutes, which is longer than any time-out.
BOUNDS_MS = tuple(round(10 ** (step / _STEPS_PER_DECADE), 3) for step in range(34))


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """Estimate the duration in ms not exceeded by a share of attempts; None without counts.

    `counts` are by step: the step of a duration is the number of BOUNDS_MS at or below it. The
    estimate is the geometric middle of the step, so it is off by a fifth at most; up to 4 ms it is
    exact. Durations above all bounds are reported as the last bound.
    """
    total = sum(counts.values())
    rank, passed = share * total, 0
    for step in sorted(counts):
        passed += counts[step]
        if counts[step] and passed >= rank:
            return _middle(step)
    return None


def _middle(step: int) -> int:
    if step == 0:
        return 0
    if step >= len(BOUNDS_MS):
        return round(BOUNDS_MS[-1])
    lowest, bound = BOUNDS_MS[step - 1], BOUNDS_MS[step]
    # Durations are integers: if only one integer lies in the step, the estimate is exact.
    whole = [
        duration for duration in range(int(lowest), int(bound) + 1) if lowest <= duration < bound
    ]
    return whole[0] if len(whole) == 1 else round((lowest * bound) ** 0.5)
