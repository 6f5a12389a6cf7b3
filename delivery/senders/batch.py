"""What came of one run of an ordered lane.

Skipped deliveries that failed again pause by themselves, so that one poisoned message neither stops fresh ones nor is
tried with each of them. A run in which fresh ones failed, and nothing was settled, tells of a sick endpoint: the
lane is blocked.
"""

import time

from delivery.verdict import Rules, pause_seconds


class RunBatch:
    """The deliveries that were read for one run. `left` are neither tried nor set aside yet."""

    __slots__ = ("failed", "fresh", "left", "reason", "rules", "settled", "skipped", "skipped_settled")

    def __init__(self, *, fresh: int, skipped: int) -> None:
        self.fresh = fresh
        self.skipped = skipped
        self.left = fresh + skipped
        self.settled = 0
        self.skipped_settled = 0
        # The first that failed, and why the last did.
        self.failed: int | None = None
        self.reason = ""
        self.rules: Rules | None = None

    @property
    def is_fruitless(self) -> bool:
        """Whether some were tried, and none was settled or moved to the retry lane."""
        return self.rules is not None and not self.settled

    def set_aside(self) -> None:
        """One of them is not sent: its subscription holds it back."""
        self.left -= 1

    def count_settled(self, *, was_skipped: bool) -> None:
        """One of them was settled, or moved to the retry lane."""
        self.left -= 1
        self.settled += 1
        self.skipped_settled += was_skipped

    def count_failed(self, delivery_id: int, *, reason: str, rules: Rules) -> None:
        """One of them was tried, and is set aside."""
        self.left -= 1
        self.failed = self.failed or delivery_id
        self.reason = reason
        self.rules = rules


class SkippedPause:
    """Until when the skipped deliveries of a lane are not tried, because nothing came of them."""

    def __init__(self) -> None:
        self._failures = 0
        self._due = 0.0

    def learn(self, batch: RunBatch) -> None:
        """Take in what came of a whole run."""
        if batch.skipped_settled:
            self._failures = 0
        elif batch.skipped and batch.rules:
            self._failures += 1
            self._due = time.monotonic() + pause_seconds(batch.rules, failures=self._failures)

    @property
    def seconds_left(self) -> float:
        return max(self._due - time.monotonic(), 0.0)

    def end(self) -> None:
        self._due = 0.0

    def end_if_over(self) -> bool:
        """End it if its time has come; False if it had ended, or goes on."""
        is_over = self._due > 0 and not self.seconds_left
        if is_over:
            self.end()
        return is_over

    def rows(self, rows: int) -> int:
        """How many of so many may be old failures: at most half, and none while they pause."""
        return 0 if self.seconds_left else max(rows // 2, 1)
