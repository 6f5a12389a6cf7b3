"""What stops a lane: blocked keys, a suspension, a pause of skipped deliveries.

    flowing ── an attempt fails, and the policy blocks its key ──▶ blocked ── it is answered, or nothing waits ──▶ flowing
       │  ▲
       │  └── go_on: a probe was answered, or what suspended it is not to be sent ── suspended ◀─┐
       │                                      blocked ◀── go_on_blocked: a person ──────┘         │
       └── attempts used up, or a rejection: suspend ───────────────────────────────────────────┘

What an attempt says of its key is for `keys` to learn; what the lane's row says of blocked keys is in `outages`. Each
transition returns the change of the lane's row, which is to be committed.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from delivery.outcome import Outcome
from delivery.senders.batch import Batch, SkippedPause
from delivery.senders.entries import LaneChange
from delivery.senders.keys import Keys, learn_in_order, learn_of_endpoint
from delivery.senders.outages import Outages
from delivery.senders.parcel import Key, Parcel
from delivery.senders.window import WHOLE_LANE, Window
from delivery.states import LaneState, OutcomeClass, Status
from delivery.verdict import Rules, Step, Verdict, pause_seconds

# What stops a lane is reviewed this often.
REVIEW_SECONDS = 5.0

_FREEING = frozenset({Step.NEXT, Step.RETRY_LANE})


class Stops:
    """`is_tried` says whether an attempt of a key is under way, `forget` drops what is read and not begun."""

    def __init__(
        self,
        row: Mapping[str, Any],
        window: Window,
        *,
        is_tried: Callable[[Key], bool],
        forget: Callable[[], None],
    ) -> None:
        self._lane_id: int = row["id"]
        self._window = window
        self._is_tried = is_tried
        self._forget = forget
        self.outages = Outages(row, window)
        self.keys = Keys(window, self.outages.health())
        self.skipped = SkippedPause()
        self._reviewed_at = float("-inf")
        self.is_suspended = window.is_ordered and row["state"] == LaneState.SUSPENDED
        self._suspended_until = float("-inf")
        if self.is_suspended:
            self.stay_suspended(row["wait_seconds"])
        # Whether a probe has resumed it, and nothing was delivered since.
        self.is_on_trial = False

    @property
    def is_pausing(self) -> bool:
        """Whether it waits for a moment that a person may move."""
        return self.is_suspended or self.outages.is_pausing

    @property
    def failures(self) -> int:
        """How many tries of an ordered lane in a row led to nothing."""
        return self.keys.health(WHOLE_LANE).failures

    def learn(self, parcel: Parcel, outcome: Outcome, verdict: Verdict, rules: Rules) -> list[LaneChange]:
        """Take in what an attempt led to."""
        key = self.keys.key_of(parcel)
        health = self.keys.health(key)
        if self._window.is_ordered:
            self.is_on_trial &= verdict.status is not Status.DELIVERED
            if learn_in_order(health, verdict, rules):
                return self._block(parcel.delivery_id, reason=outcome.reason)
            return self.outages.end(key) if verdict.step in _FREEING else []
        if self._window.learns or verdict.status is Status.DELIVERED:
            learn_of_endpoint(health, outcome, verdict, rules)
        if verdict.status is Status.DELIVERED:
            return self.outages.end(key)
        return self.tell(parcel, reason="" if outcome.outcome is OutcomeClass.UNSENDABLE else outcome.reason)

    def learn_fault(self, parcel: Parcel, rules: Rules, *, fault: str) -> list[LaneChange]:
        """Nothing can be sent to the parcel's endpoint, by a fault of ours: its key waits until that is mended."""
        health = self.keys.health(self.keys.key_of(parcel))
        if not health.is_blocked():
            health.block(pause_seconds(rules, failures=health.failures + 1))
        if self._window.is_ordered:
            return self._block(parcel.delivery_id, reason=fault)
        return self.tell(parcel, reason=fault)

    def tell(self, parcel: Parcel, *, reason: str = "") -> list[LaneChange]:
        """What people are to know of an endpoint that has not taken a message; without a `reason` it was not tried.

        That it is blocked is told when nothing is under way there any more, however the last of that ended.
        """
        key = self.keys.key_of(parcel)
        health = self.keys.health(key)
        if not self._window.reports:
            return []
        if not health.failures:
            return self.outages.end(key)
        if not health.is_blocked():
            return []
        if reason:
            self.outages.suspect(key, parcel.delivery_id, health, reason=reason)
        return [] if self._is_tried(key) else self.outages.begin(key)

    def learn_of_batch(self, batch: Batch) -> list[LaneChange]:
        """At the end of a run: pause when nothing came of it; see `Batch`."""
        health = self.keys.health(WHOLE_LANE)
        self.skipped.learn(batch)
        if not batch.is_fruitless or batch.rules is None or batch.failed is None:
            return []
        if not batch.fresh and not health.failures:
            return []
        health.block(pause_seconds(batch.rules, failures=health.failures + 1))
        return self._block(batch.failed, reason=batch.reason)

    def _block(self, delivery_id: int, *, reason: str) -> list[LaneChange]:
        """An ordered lane waits, and tries all of it again then, the skipped ones too."""
        self._forget()
        self.skipped.end()
        self.outages.suspect(WHOLE_LANE, delivery_id, self.keys.health(WHOLE_LANE), reason=reason)
        return self.outages.begin(WHOLE_LANE)

    def suspend(self, delivery_id: int | None, *, reason: str, wait_seconds: float | None) -> LaneChange:
        """Send nothing until it is resumed; a probe is due in so many seconds, or never."""
        self.is_suspended = True
        self._forget()
        self.outages.end(WHOLE_LANE)
        self.stay_suspended(wait_seconds)
        return LaneChange(
            lane_id=self._lane_id,
            state=LaneState.SUSPENDED,
            reason=reason,
            delivery_id=delivery_id,
            failures=self.failures,
            wait_seconds=wait_seconds,
        )

    def stay_suspended(self, wait_seconds: float | None) -> None:
        self._suspended_until = time.monotonic() + (math.inf if wait_seconds is None else wait_seconds)

    @property
    def suspended_left(self) -> float:
        """In how many seconds a probe is due."""
        return max(self._suspended_until - time.monotonic(), 0.0)

    def go_on(self, *, is_on_trial: bool) -> LaneChange:
        """Nothing suspends it any more."""
        self.is_suspended = False
        self.is_on_trial = is_on_trial
        self.keys.health(WHOLE_LANE).answered()
        return LaneChange(lane_id=self._lane_id, state=LaneState.IDLE)

    def go_on_blocked(self, delivery_id: int, *, reason: str) -> None:
        """A person resumed it: its row says that it is blocked, until something of it is delivered."""
        self.is_suspended = False
        health = self.keys.health(WHOLE_LANE)
        health.answered()
        health.failed()
        self.outages.suspect(WHOLE_LANE, delivery_id, health, reason=reason)
        self.outages.begin(WHOLE_LANE)

    @property
    def stopped_by(self) -> Collection[int]:
        """The deliveries that stop it at its endpoints; an ordered lane reads again to see whether it is stopped."""
        return () if self._window.is_ordered else self.outages.deliveries.values()

    @property
    def doubtful(self) -> Collection[int]:
        """What stops it at endpoints that could be tried now, and are not."""
        if self._window.is_ordered:
            return ()
        return [
            delivery_id
            for key, delivery_id in self.outages.deliveries.items()
            if not self.keys.health(key).is_blocked() and not self._is_tried(key)
        ]

    @property
    def is_review_due(self) -> bool:
        return bool(self.stopped_by) and time.monotonic() >= self._reviewed_at + REVIEW_SECONDS

    def begin_review(self) -> None:
        self._reviewed_at = time.monotonic()
