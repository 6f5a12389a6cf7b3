"""The pace of a lane that catches up on what was held: at most so many deliveries are begun a second."""

import time

# What was not begun in time, because the lane was waiting for something else, is made up for so long.
LATE_SECONDS = 0.1


class Pace:
    """Of one lane; without a rate it costs nothing to look."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._due_at = time.monotonic()

    def keep(self, rate: float | None) -> bool:
        """Keep this rate from now on; return whether that is another."""
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
        """In how many seconds the next may begin."""
        return max(self._due_at - time.monotonic(), 0.0)

    def count(self) -> None:
        """One begins now."""
        if self._rate is not None:
            self._due_at = max(self._due_at, time.monotonic() - LATE_SECONDS) + 1 / self._rate
