"""The times of a policy's retries, if none is late: for `delivery.verdict` and descriptions."""

# 2^30 of the shortest unit are three years, so more doublings only make larger numbers.
_MOST_DOUBLINGS = 30


def offset_seconds(retry: int, *, seconds: float, is_exponential: bool) -> float:
    """Return the offset of a retry from the first failure; the first retry is 1.

    The exponential offsets are Workfront's, `(2^n - 1)` units: each wait is twice as long as the
    one before.
    """
    return seconds * (2.0 ** min(retry, _MOST_DOUBLINGS) - 1) if is_exponential else seconds * retry
