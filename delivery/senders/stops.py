"""What stops a lane: blocked keys, a suspension, a pause of skipped deliveries; and what its row says of them.

    flowing ── a key is blocked, and nothing under way there may tell otherwise ──▶ blocked ── it takes one ──▶ flowing
       │  ▲                                                                          │  ▲ │
       │  │                                                                          │  └─┘ it is blocked still
       │  └──────────────────── nothing that waits stops it any more ────────────────┘
       │
       ├── attempts used up, or a rejection ──▶ suspended ── go_on: a probe, or its reason is gone ──▶ flowing
                                                    └── go_on_blocked: a person ──▶ blocked

The row names the delivery that failed last, why, and when its key is tried again, with one message. The other
endpoints of a CONCURRENT subscriber flow meanwhile. While nobody serves a lane that is BLOCKED it stays so; it always has a
sender soon, who begins with what the row says. A delivery that waits no more (settled, moved to the retry lane, held
by an INACTIVE subscription) is no reason any more once the pause of its endpoint is over: nothing may ever be sent there
that could end it. Not before: with each VOLATILE message that fails the lane would flow and be BLOCKED by turns.

A change of the row is returned, to be handed in at the moment it is decided, so the row says the last. The row has the
pause of the key that is blocked longest.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from delivery.outcome import Outcome
from delivery.senders.batch import Batch, SkippedPause
from delivery.senders.entries import LaneChange
from delivery.senders.keys import Failure, Health, Keys, learn_in_order, learn_of_endpoint
from delivery.senders.parcel import Key, Parcel
from delivery.senders.window import WHOLE_LANE, Window
from delivery.states import LaneState, OutcomeClass, Status
from delivery.verdict import Rules, Step, Verdict, pause_seconds

# What stops a lane is reviewed this often.
REVIEW_SECONDS = 5.0

_STOPPED = frozenset({LaneState.BLOCKED, LaneState.SUSPENDED})
_FREEING = frozenset({Step.NEXT, Step.RETRY_LANE})


class Stops:
    """`is_tried` says whether an attempt of a key is under way, `forget` drops what is read and not begun."""

    def __init__(
        self,
        row: Mapping[str, Any],
        window: Window,
        *,
        is_tried: Callable[[Key], bool],
        forget: Callable[[], object],
    ) -> None:
        self._lane_id: int = row["id"]
        self._window = window
        self._is_tried = is_tried
        self._forget = forget
        self.keys = Keys(window)
        self.skipped = SkippedPause()
        # The failures that people know to block keys, the longest first; when the pause ends that the row tells of, and the
        # same of what was handed in last.
        self._known: dict[Key, Failure] = {}
        self._told_until = self._telling_until = float("-inf")
        self._reviewed_at = float("-inf")
        self.is_suspended = window.is_ordered and row["state"] == LaneState.SUSPENDED
        self._suspended_until = float("-inf")
        # Whether a probe has resumed it, and nothing was delivered since.
        self.is_on_trial = False
        # Who served it in order has stopped it for one delivery: no reason for any other to wait.
        self.were_in_order = (
            not window.is_ordered and row["state"] in _STOPPED and not row["run_is_concurrent"]
        )
        if self.is_suspended:
            self.stay_suspended(row["wait_seconds"])
        elif row["state"] in _STOPPED and not self.were_in_order:
            self._begin_blocked(row)

    def _begin_blocked(self, row: Mapping[str, Any]) -> None:
        key = WHOLE_LANE if self._window.is_ordered else row["head_subscription_id"]
        if key is not None:
            self._told_until = time.monotonic() + max(row["wait_seconds"] or 0.0, 0.0)
            health = Health(failures=max(row["failures"], 1), blocked_until=self._told_until)
            health.failure = self._known[key] = Failure(row["delivery_id"], row["reason"])
            self.keys.add(key, health)

    @property
    def is_pausing(self) -> bool:
        """Whether its row, as we have left it, tells of a pause that a person may end."""
        return self.is_suspended or (self.is_blocked and time.monotonic() < self._told_until)

    @property
    def is_blocked(self) -> bool:
        """Whether people know of a blocked key."""
        return bool(self._known)

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
            return self.end(key) if verdict.step in _FREEING else []
        if self._window.learns or verdict.status is Status.DELIVERED:
            learn_of_endpoint(health, outcome, verdict, rules)
        if verdict.status is Status.DELIVERED:
            return self.end(key)
        return self.tell(parcel, reason="" if outcome.outcome is OutcomeClass.UNSENDABLE else outcome.reason)

    def learn_fault(self, parcel: Parcel, rules: Rules, *, fault: str) -> list[LaneChange]:
        """Nothing can be sent to the parcel's endpoint, by a fault of ours: its key waits until that is mended."""
        health = self.keys.health_of(parcel)
        if not health.is_blocked():
            health.block(pause_seconds(rules, failures=health.failures + 1))
        if self._window.is_ordered:
            return self._block(parcel.delivery_id, reason=fault)
        return self.tell(parcel, reason=fault)

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
        self._known[WHOLE_LANE] = Failure(delivery_id, reason)
        return [self.change()]

    def tell(self, parcel: Parcel, *, reason: str = "") -> list[LaneChange]:
        """What people are to know of an endpoint that has not taken a message; without a `reason` it was not tried.

        That it is blocked is told when nothing is under way there any more, however the last of that ended.
        """
        key = self.keys.key_of(parcel)
        health = self.keys.health(key)
        if not self._window.reports:
            return []
        if not health.failures:
            return self.end(key)
        if reason and health.is_blocked():
            health.failure = Failure(parcel.delivery_id, reason)
        is_news = health.failure is not None and self._known.get(key) is not health.failure
        if not is_news or not health.is_blocked() or self._is_tried(key):
            return []
        assert health.failure is not None
        self._known[key] = health.failure
        return [self.change()]

    def end(self, key: Key) -> list[LaneChange]:
        """The key takes messages."""
        return [self.change()] if self._known.pop(key, None) else []

    def forget(self, delivery_ids: Collection[int]) -> list[LaneChange]:
        """These deliveries stop nothing any more."""
        gone = [key for key, failure in self._known.items() if failure.delivery_id in delivery_ids]
        for key in gone:
            del self._known[key]
            self.keys.health(key).failure = None
        return [self.change()] if gone else []

    def change(self) -> LaneChange:
        """What the row is to say now. An ordered lane that is blocked has no run."""
        if not self._known:
            return LaneChange(lane_id=self._lane_id, state=LaneState.IDLE, ends_run=False)
        key, failure = next(iter(self._known.items()))
        health = self.keys.health(key)
        self._telling_until = health.blocked_until
        return LaneChange(
            lane_id=self._lane_id,
            state=LaneState.BLOCKED,
            reason=failure.reason,
            delivery_id=failure.delivery_id,
            failures=health.failures,
            wait_seconds=max(health.blocked_until - time.monotonic(), 0.0),
            ends_run=self._window.is_ordered,
        )

    def told(self) -> None:
        """The last change is on disk."""
        self._told_until = self._telling_until

    def try_now(self) -> None:
        """End all pauses, whatever the row says."""
        self._told_until = self._telling_until = float("-inf")
        self.keys.try_now()

    def suspend(self, delivery_id: int | None, *, reason: str, wait_seconds: float | None) -> LaneChange:
        """Send nothing until it is resumed; a probe is due in so many seconds, or never."""
        self.is_suspended = True
        self._forget()
        self._known.clear()
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

    def go_on(self, *, is_on_trial: bool, reason: str) -> LaneChange:
        """Nothing suspends it any more."""
        self.is_suspended = False
        self.is_on_trial = is_on_trial
        self.keys.health(WHOLE_LANE).answered()
        return LaneChange(lane_id=self._lane_id, state=LaneState.IDLE, reason=reason)

    def go_on_blocked(self, delivery_id: int, *, reason: str) -> None:
        """A person resumed it: its row says that it is blocked, until something of it is delivered."""
        self.is_suspended = False
        self.keys.add(WHOLE_LANE, Health(failures=1))
        self._known[WHOLE_LANE] = Failure(delivery_id, reason)

    @property
    def to_review(self) -> Collection[int]:
        """The deliveries that stop it at its endpoints; an ordered lane reads again to see whether it is stopped."""
        return [] if self._window.is_ordered else [failure.delivery_id for failure in self._known.values()]

    @property
    def doubtful(self) -> Collection[int]:
        """Those of them at endpoints that could be tried now, and are not."""
        return [
            failure.delivery_id
            for key, failure in self._known.items()
            if not (self._window.is_ordered or self.keys.health(key).is_blocked() or self._is_tried(key))
        ]

    @property
    def is_review_due(self) -> bool:
        return bool(self.to_review) and time.monotonic() >= self._reviewed_at + REVIEW_SECONDS

    def begin_review(self) -> None:
        self._reviewed_at = time.monotonic()
