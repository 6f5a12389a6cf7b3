"""When a policy's retries are due, if none comes late: pure, for `delivery.verdict` and for telling it in words."""

# 2^30 of the shortest unit are three years: beyond it only numbers grow.
_MOST_DOUBLINGS = 30


def offset_seconds(retry: int, *, seconds: float, is_exponential: bool) -> float:
    """Return how long after the first failure that retry is due, the first being 1.

    The exponential offsets are Workfront's, `(2^n - 1)` units: so each wait is
    twice as long as the one before.
    """
    return seconds * (2.0 ** min(retry, _MOST_DOUBLINGS) - 1) if is_exponential else seconds * retry
