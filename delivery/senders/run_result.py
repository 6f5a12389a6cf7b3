"""The result of one run of an ordered lane.

Skipped deliveries that fail again get a pause of their own, so that one poisoned message neither
stops fresh deliveries nor is tried with each of them. A run in which fresh deliveries failed and
none was settled points to a sick endpoint: the lane is blocked.
"""

import time

from delivery.verdict import Rules, pause_seconds


class RunResult:
    """The deliveries read for one run. `left` counts those neither tried nor set aside yet.

    `is_all`: when they were read the lane had no others that could be sent.
    """

    __slots__ = (
        "failed",
        "fresh",
        "is_all",
        "left",
        "reason",
        "rules",
        "settled",
        "skipped",
        "skipped_settled",
    )

    def __init__(self, *, fresh: int, skipped: int, is_all: bool = False) -> None:
        self.fresh = fresh
        self.skipped = skipped
        self.is_all = is_all
        self.left = fresh + skipped
        self.settled = 0
        self.skipped_settled = 0
        # The first delivery that failed, and the reason of the last failure.
        self.failed: int | None = None
        self.reason = ""
        self.rules: Rules | None = None

    @property
    def is_fruitless(self) -> bool:
        """True if some deliveries were tried, and none was settled or moved to the retry lane."""
        return self.rules is not None and not self.settled

    @property
    def leaves_nothing(self) -> bool:
        """True if all that the lane had was read for this run, and has left the lane.

        Whatever came later has a notification of its own, or is found by the poll.
        """
        return self.is_all and self.settled == self.fresh + self.skipped

    def set_aside(self) -> None:
        """Count one delivery that is not sent because its subscription holds it back."""
        self.left -= 1

    def count_settled(self, *, was_skipped: bool) -> None:
        """Count one delivery that was settled or moved to the retry lane."""
        self.left -= 1
        self.settled += 1
        self.skipped_settled += was_skipped

    def count_failed(self, delivery_id: int, *, reason: str, rules: Rules) -> None:
        """Count one delivery that was tried and is set aside."""
        self.left -= 1
        self.failed = self.failed or delivery_id
        self.reason = reason
        self.rules = rules


class SkippedPause:
    """The pause of a lane's skipped deliveries, after runs in which all of them failed."""

    def __init__(self) -> None:
        self._failures = 0
        self._due = 0.0

    def record_run(self, result: RunResult) -> None:
        """Update the pause from the result of a whole run."""
        if result.skipped_settled:
            self._failures = 0
        elif result.skipped and result.rules:
            self._failures += 1
            self._due = time.monotonic() + pause_seconds(result.rules, failures=self._failures)

    @property
    def seconds_left(self) -> float:
        return max(self._due - time.monotonic(), 0.0)

    def end(self) -> None:
        self._due = 0.0

    def end_if_over(self) -> bool:
        """End the pause if its time has come; return False if it had ended or continues."""
        is_over = self._due > 0 and not self.seconds_left
        if is_over:
            self.end()
        return is_over

    def rows(self, rows: int) -> int:
        """Return how many of `rows` may be old failures: at most half, none during the pause."""
        return 0 if self.seconds_left else max(rows // 2, 1)
