"""The pace of a lane that catches up on held deliveries: at most so many begun per second."""

import math
import time

# Delay up to this long, while the lane waited for something else, is made up for.
LATE_SECONDS = 0.1
# The scripts of this much time are executed together. With a whole batch each, lanes that were
# released together execute hundreds of scripts at once, and fill the cores.
AHEAD_SECONDS = 0.5


class Pace:
    """The pace of one lane; without a rate the check costs nothing."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._due_at = time.monotonic()

    def keep(self, rate: float | None) -> bool:
        """Use this rate from now on; return whether it differs from the last."""
        if rate == self._rate:
            return False
        self._rate = rate
        self._due_at = time.monotonic()
        return True

    @property
    def is_kept(self) -> bool:
        return self._rate is not None

    @property
    def seconds_left(self) -> float:
        """The seconds until the next delivery may begin."""
        return max(self._due_at - time.monotonic(), 0.0)

    def rows_ahead(self, rows: int) -> int:
        """Return how many of so many deliveries to execute scripts for at a time; at least one."""
        if self._rate is None:
            return rows
        return min(rows, max(math.ceil(self._rate * AHEAD_SECONDS), 1))

    def count(self) -> None:
        """Count a delivery that begins now."""
        if self._rate is not None:
            self._due_at = max(self._due_at, time.monotonic() - LATE_SECONDS) + 1 / self._rate
