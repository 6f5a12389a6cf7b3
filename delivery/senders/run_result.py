"""The runs of an ordered lane: their limits, their results, and the pause of skipped deliveries.

A run has up to `max_queued_to_send` deliveries and no pause inside: an endpoint that answers gets
all of it. While nothing of it succeeds it is read in pieces. The first piece after a failure is
short, because the endpoint may still be unreachable; memory and scripts make other pieces short.

    read a piece ─▶ send it ─┬─▶ all failed, and the run may have more ─▶ read its next piece …
                             ├─▶ all failed, and that was the whole run ─▶ pause, then the next run
                             └─▶ some were settled ─▶ the next run at once

A run in which deliveries never tried before failed and none was settled points to a sick endpoint:
the lane is blocked. While that pause lasts one delivery never tried is sent now and then (an early
attempt), because a message that the endpoint accepts must not wait for those that it refuses.
Skipped deliveries that fail again without fresh ones get a pause of their own, so that one poisoned
message neither stops fresh deliveries nor is tried with each of them.
"""

import time
from dataclasses import dataclass

from delivery.verdict import Rules, pause_seconds

# The interval of early attempts in the pause after a run without success.
EARLY_ATTEMPT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceLimits:
    """The limits of reading one piece: rows, and how many of them were never tried, or skipped.

    `began_at`, in seconds since boot, leaves out skipped deliveries that were tried since then.
    """

    rows: int
    fresh_rows: int
    skipped_rows: int
    is_fresh_first: bool = False
    began_at: float | None = None


class RunResult:
    """One run of up to `most` deliveries. `left` counts those neither tried nor set aside yet.

    `is_fresh_first`: deliveries never tried come before skipped ones; otherwise all are in the
    order of ids. `has_skipped`: there may be skipped ones to read. `is_early`: it is no whole run,
    but one delivery in the pause after a run. `is_all`: when they were read the lane had no others
    that could be sent.
    """

    __slots__ = (
        "began_at",
        "failed",
        "failed_subscription_id",
        "fresh",
        "generation",
        "has_skipped",
        "is_all",
        "is_cut",
        "is_early",
        "is_fresh_first",
        "left",
        "most",
        "reason",
        "rules",
        "settled",
        "skipped",
        "skipped_settled",
    )

    def __init__(
        self,
        *,
        most: int,
        generation: int = 0,
        has_skipped: bool = True,
        is_fresh_first: bool = False,
        is_early: bool = False,
    ) -> None:
        self.most = most
        self.is_early = is_early
        # Of the lane's stock: a run that is forgotten does not go on.
        self.generation = generation
        self.has_skipped = has_skipped
        self.is_fresh_first = is_fresh_first
        self.began_at: float | None = None
        self.fresh = self.skipped = self.left = self.settled = self.skipped_settled = 0
        self.is_all = False
        # Whether a limit of the last piece may have left out deliveries that belong to the run.
        self.is_cut = False
        # The first delivery that failed, and the reason of the last failure.
        self.failed: int | None = None
        self.failed_subscription_id = 0
        self.reason = ""
        self.rules: Rules | None = None

    def limits(self, rows: int) -> PieceLimits:
        """Return the limits of the next piece, if it may have so many rows.

        At most half of a run is skipped deliveries. Where fresh ones come first they leave those
        places free, as long as there may be skipped ones: otherwise they could take every run.
        """
        places = self.most - self.fresh - self.skipped
        rows = min(rows, places)
        skipped = self._skipped_left
        kept = min(skipped, self.most // 2) if self.is_fresh_first else 0
        return PieceLimits(
            rows=rows,
            fresh_rows=min(places - kept, rows),
            skipped_rows=min(skipped, rows if self.is_fresh_first else max(rows // 2, 1)),
            is_fresh_first=self.is_fresh_first,
            began_at=self.began_at,
        )

    def add(self, limits: PieceLimits, *, fresh: int, skipped: int, is_cut: bool) -> None:
        """Add a piece that was read with those limits. `is_cut`: another limit left some out."""
        is_cut |= fresh + skipped >= limits.rows
        has_all_skipped = not is_cut and skipped < limits.skipped_rows
        is_cut |= fresh >= limits.fresh_rows
        self.is_all = has_all_skipped and not (is_cut or self.fresh or self.skipped)
        self.has_skipped &= not has_all_skipped
        self.fresh += fresh
        self.skipped += skipped
        self.left += fresh + skipped
        self.is_cut = is_cut or self._skipped_left > 0

    @property
    def _skipped_left(self) -> int:
        """How many skipped deliveries it may still have."""
        return max(self.most // 2, 1) - self.skipped if self.has_skipped else 0

    @property
    def is_fruitless(self) -> bool:
        """True if some deliveries were tried, and none was settled or moved to the retry lane."""
        return self.rules is not None and not self.settled

    @property
    def goes_on(self) -> bool:
        """True if nothing of it has succeeded yet, and there may be more to read for it."""
        return not self.settled and self.is_cut and self.fresh + self.skipped < self.most

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

    def count_failed(
        self, delivery_id: int, *, subscription_id: int, reason: str, rules: Rules
    ) -> None:
        """Count one delivery that was tried and is set aside."""
        self.left -= 1
        if self.failed is None:
            self.failed, self.failed_subscription_id = delivery_id, subscription_id
        self.reason = reason
        self.rules = rules


class Runs:
    """The run of an ordered lane that was read last, and the pause after it.

    The pause follows runs in which all skipped deliveries failed, and runs without success: then
    only early attempts are made.
    """

    def __init__(self) -> None:
        self._run: RunResult | None = None
        self._failures = 0
        self._due = 0.0

    def to_read(self, *, most: int, generation: int, is_blocked: bool) -> RunResult:
        """Return the run to read on: the last one if it goes on, otherwise a new one.

        After a fruitless run the next begins with the deliveries never tried.
        """
        if is_blocked and self.seconds_left:
            return RunResult(most=1, generation=generation, has_skipped=False, is_early=True)
        last = self._run
        if last is not None and last.goes_on and last.generation == generation:
            return last
        self._run = RunResult(
            most=most,
            generation=generation,
            has_skipped=not self.seconds_left,
            is_fresh_first=last is not None and last.is_fruitless,
        )
        return self._run

    def is_answered(self, generation: int) -> bool:
        """Return whether the endpoint answered in a run that goes on."""
        run = self._run
        return run is not None and run.generation == generation and run.is_fruitless and run.goes_on

    def block(self) -> None:
        """Note that an attempt blocked the lane: the delivery stays first."""
        self._run = None
        self.end_pause()

    def flow(self) -> None:
        """Note that a blocked lane flows again: skipped deliveries are tried at once."""
        self._failures = 0
        self.end_pause()

    def pause(self, seconds: float) -> None:
        self._due = time.monotonic() + seconds

    def record(self, result: RunResult) -> None:
        """Update the pause from the result of a whole run."""
        if result.skipped_settled:
            self._failures = 0
        elif result.skipped and result.rules:
            self._failures += 1
            self.pause(pause_seconds(result.rules, failures=self._failures))

    @property
    def seconds_left(self) -> float:
        """The seconds until the next whole run, or until skipped deliveries are tried again."""
        return max(self._due - time.monotonic(), 0.0)

    @property
    def is_pause_over(self) -> bool:
        """True if the time of the pause has come, and nobody has ended the pause yet."""
        return self._due > 0 and not self.seconds_left

    @property
    def is_pausing(self) -> bool:
        """True until somebody ends the pause: the next run is to be read then."""
        return self._due > 0

    def end_pause(self) -> None:
        self._due = 0.0

    def end_pause_if_over(self) -> bool:
        """End the pause if its time has come; return False if it had ended or continues."""
        is_over = self.is_pause_over
        if is_over:
            self.end_pause()
        return is_over
