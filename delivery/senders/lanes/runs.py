"""The runs of an ordered lane in turn, and the pauses between them.

A run in which fresh deliveries failed and none was settled points to a sick endpoint: the lane is
blocked. In the pause a fresh delivery is sent now and then (an early attempt), because
a message that the endpoint accepts must not wait for messages that it refuses. Skipped deliveries
of a subscription pause by themselves when all of them fail again: so a poisoned message neither
stops fresh deliveries nor is tried with each of them, and an endpoint that refuses everything is
not tried again whenever a sibling accepts a message.
"""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass

from delivery.senders.run_result import RunResult
from delivery.verdict import least_pause_seconds

# The interval of early attempts in the pause after a run without success.
EARLY_ATTEMPT_SECONDS = 5.0


@dataclass(slots=True)
class SkippedPause:
    """The pause of a subscription's skipped deliveries, after `failures` runs in which all failed.

    `due` is 0 when nothing pauses, and in the past until the lane has noted the end of the pause.
    """

    failures: int = 0
    due: float = 0.0


class Runs:
    """The run of an ordered lane that was read last, and the pauses after it.

    In the pause of the lane, after a run without success, only early attempts are made; any success
    ends the pause. When all skipped deliveries of a subscription failed in a run, these pause: they
    are not read until the time comes, a nudge arrives, or their own endpoint is reached after it
    had stopped the lane. The success of a sibling says nothing about this endpoint.
    """

    def __init__(self) -> None:
        self._run: RunResult | None = None
        self._due = 0.0
        self._skipped: dict[int, SkippedPause] = {}
        # The subscriptions that have stopped the lane, and were not reached since.
        self._unreached: set[int] = set()

    def to_read(self, *, most: int, generation: int, is_blocked: bool) -> RunResult:
        """Return the run to read for: the last if it goes on, otherwise a new run.

        After a fruitless run the next begins with fresh deliveries. A run of a single delivery then
        has no room for a skipped delivery, so fresh deliveries come first only in every other such
        run.
        """
        if is_blocked and self.seconds_left:
            return RunResult(most=1, generation=generation, has_skipped=False, is_early=True)
        last = self._run
        if last is not None and last.goes_on and last.generation == generation:
            return last
        self._run = RunResult(
            most=most,
            generation=generation,
            is_fresh_first=last is not None
            and last.is_fruitless
            and not (most == 1 and last.is_fresh_first),
            resting=self._resting,
        )
        return self._run

    def is_answered(self, generation: int) -> bool:
        """Return whether the endpoint answered in a run that goes on."""
        run = self._run
        return run is not None and run.generation == generation and run.is_fruitless and run.goes_on

    def block(self, subscription_id: int) -> None:
        """Note that an attempt there blocked the lane: the delivery stays first."""
        self._run = None
        self._unreached.add(subscription_id)
        self._due = 0.0

    def flow(self) -> None:
        """Note that a blocked lane flows again."""
        self._due = 0.0

    def reach(self, subscription_id: int) -> None:
        """Note a success there: if it had stopped the lane, skipped deliveries are due at once."""
        if subscription_id not in self._unreached:
            return
        self._unreached.remove(subscription_id)
        if pause := self._skipped.get(subscription_id):
            pause.due = min(pause.due, time.monotonic())

    def pause(self, seconds: float, subscription_ids: Collection[int] = ()) -> None:
        """Begin the pause of the lane, which failures of these subscriptions have stopped."""
        self._unreached.update(subscription_ids)
        self._due = time.monotonic() + seconds

    def record(self, result: RunResult) -> None:
        """Lengthen or end the pauses of skipped deliveries by a run, whole or cut short."""
        for subscription_id in result.skipped_settled:
            self._skipped.pop(subscription_id, None)
        for subscription_id, rules in result.skipped_failed.items():
            if subscription_id not in result.skipped_settled:
                pause = self._skipped.setdefault(subscription_id, SkippedPause())
                pause.failures += 1
                # Over before the lane's, or the next run of a lane that fails would lack them.
                seconds = least_pause_seconds(rules, failures=pause.failures)
                pause.due = max(pause.due, time.monotonic() + seconds)

    @property
    def _resting(self) -> frozenset[int]:
        now = time.monotonic()
        return frozenset(id for id, pause in self._skipped.items() if pause.due > now)

    @property
    def seconds_left(self) -> float:
        """The seconds until the next whole run."""
        return max(self._due - time.monotonic(), 0.0)

    @property
    def seconds_until_next(self) -> float | None:
        """The seconds until the first of the pauses is over; None without any."""
        due = min((due for due in self._dues if due > 0), default=None)
        return None if due is None else max(due - time.monotonic(), 0.0)

    @property
    def is_pausing(self) -> bool:
        """True until somebody ends the last pause: something is to be read then."""
        return self.seconds_until_next is not None

    @property
    def _dues(self) -> list[float]:
        return [self._due, *(pause.due for pause in self._skipped.values())]

    def end_pauses(self, *, until: float = math.inf) -> None:
        """End the pauses whose time comes until then."""
        if self._due <= until:
            self._due = 0.0
        for pause in self._skipped.values():
            if pause.due <= until:
                pause.due = 0.0

    def end_pauses_that_are_over(self) -> bool:
        """End the pauses whose time has come; return False if all had ended or continue."""
        is_over = self.seconds_until_next == 0
        if is_over:
            self.end_pauses(until=time.monotonic())
        return is_over
