"""The clock for times to live; unlike the monotonic clock it runs while the machine sleeps."""

import time

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def seconds_since_boot() -> float:
    """Return the seconds since some moment in the past; nobody sets this clock."""
    return time.clock_gettime(_CLOCK)
