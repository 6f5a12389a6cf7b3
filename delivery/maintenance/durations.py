"""How long attempts took, kept as counts in steps: small to store, simple to add, and enough to tell percentiles by."""

from collections.abc import Mapping

_STEPS_PER_DECADE = 6
# From a millisecond to five minutes, which is more than any time-out.
BOUNDS_MS = tuple(round(10 ** (step / _STEPS_PER_DECADE), 3) for step in range(34))


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """Estimate what a share of the durations does not exceed, in milliseconds; None when there are none.

    `counts` are by step: how many lie at or above as many of BOUNDS_MS. The estimate is the geometric middle of the right step,
    so it is off by a fifth at most; up to 4 ms it is exact. What is above all bounds is told as the last of them.
    """
    total = sum(counts.values())
    sought, passed = share * total, 0
    for step in sorted(counts):
        passed += counts[step]
        if counts[step] and passed >= sought:
            return _middle(step)
    return None


def _middle(step: int) -> int:
    if step == 0:
        return 0
    if step >= len(BOUNDS_MS):
        return round(BOUNDS_MS[-1])
    lowest, bound = BOUNDS_MS[step - 1], BOUNDS_MS[step]
    # Durations are whole: where only one lies in the step, it is that one.
    whole = [duration for duration in range(int(lowest), int(bound) + 1) if lowest <= duration < bound]
    return whole[0] if len(whole) == 1 else round((lowest * bound) ** 0.5)
