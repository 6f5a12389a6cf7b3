"""How an endpoint fares, as one lane of independent messages has come to know it."""

import time
from dataclasses import dataclass

from delivery.verdict import Rules, pause_seconds

# Attempts under way at once, of one lane to one endpoint: one that hangs takes no more than its own places.
PLACES = 16
# An endpoint that failed is tried after its siblings for so long.
TRIED_LAST_SECONDS = 60.0
# After so many failures in a row it counts as down, though it answers.
FAILURES_UNTIL_DOWN = 5


@dataclass(slots=True)
class Health:
    """One that is down is left alone a while, then tried with one message.

    `failures` counts those in a row, `turn` is its last in the order of all.
    """

    under_way: int = 0
    turn: int = 0
    failures: int = 0
    failed_at: float = float("-inf")
    down_until: float = float("-inf")

    def is_down(self) -> bool:
        return time.monotonic() < self.down_until

    def has_failed_lately(self) -> bool:
        return time.monotonic() < self.failed_at + TRIED_LAST_SECONDS

    def has_room(self, places: int = PLACES) -> bool:
        was_down = self.failures > 0 and self.down_until > self.failed_at
        return not self.is_down() and self.under_way < (1 if was_down else places)

    def answered(self) -> None:
        """It took a message, or refused that one for good."""
        self.failures = 0
        self.down_until = float("-inf")

    def accepted(self) -> None:
        self.answered()
        self.failed_at = float("-inf")

    def failed(self, rules: Rules, *, is_unreachable: bool, wait_seconds: float = 0.0) -> None:
        """It could not take a message. What fails while it is down already tells nothing new."""
        if self.is_down():
            return
        self.failures += 1
        self.failed_at = time.monotonic()
        if is_unreachable or self.failures >= FAILURES_UNTIL_DOWN:
            pause = pause_seconds(rules, failures=self.failures)
            self.down_until = self.failed_at + max(wait_seconds, pause)

    def try_now(self) -> None:
        """End its pause: a person asked for it, or its subscription changed.

        What was down is tried with one message.
        """
        self.down_until = min(self.down_until, time.monotonic())
