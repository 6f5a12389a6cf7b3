"""The clock by which a time to live is over: unlike the monotonic one it goes on while the machine sleeps."""

import time

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def seconds_since_boot() -> float:
    """Return the seconds since some moment before; nobody sets this clock."""
    return time.clock_gettime(_CLOCK)
