"""The keys of a lane: which deliveries wait after a failed attempt, and for how long.

An ordered lane has one key, itself; in other lanes each endpoint is a key. `senders/README.md` has
the state diagram.
"""

import itertools
import math
import random
import time
from collections.abc import Collection
from dataclasses import dataclass

from delivery.outcome import Outcome
from delivery.senders.lanes.window import WHOLE_LANE, Window
from delivery.senders.parcel import Key, Parcel
from delivery.states import NEVER_CALLED, OutcomeClass, Status
from delivery.verdict import NextStep, Rules, Verdict, pause_seconds, requested_pause

# For this long a failed endpoint is tried after its siblings.
TRIED_LAST_SECONDS = 60.0
# The retry lane reports an endpoint as reached at most so often: each report costs a statement.
REPORT_SECONDS = 1.0
# After this many failures in a row an endpoint is blocked, even if it answers.
FAILURES_UNTIL_BLOCKED = 5

_UNREACHABLE = frozenset(
    {
        OutcomeClass.TIMEOUT,
        OutcomeClass.UNREACHABLE,
        OutcomeClass.TLS,
        OutcomeClass.REFUSED_ADDRESS,
        OutcomeClass.UNAVAILABLE,
        OutcomeClass.RATE_LIMITED,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """The delivery that failed last at a key, and why."""

    delivery_id: int
    reason: str


@dataclass(slots=True)
class KeyHealth:
    """The health of one key.

    `failures` counts the failures in a row, `turn` is the number of its last attempt in the order
    of all.
    """

    under_way: int = 0
    turn: int = 0
    failures: int = 0
    failed_at: float = float("-inf")
    blocked_until: float = float("-inf")
    # The failure that blocked the key last.
    failure: Failure | None = None
    reported_at: float = float("-inf")

    def is_blocked(self) -> bool:
        return time.monotonic() < self.blocked_until

    @property
    def seconds_left(self) -> float:
        """The seconds until its pause is over."""
        return max(self.blocked_until - time.monotonic(), 0.0)

    def has_failed_lately(self) -> bool:
        return time.monotonic() < self.failed_at + TRIED_LAST_SECONDS

    def has_room(self, most: int) -> bool:
        if not self.failures:
            return self.under_way < most
        was_blocked = self.blocked_until > self.failed_at
        return self.under_way < (1 if was_blocked else most) and not self.is_blocked()

    def is_report_due(self) -> bool:
        """Return whether to report that it was reached, and note that."""
        now = time.monotonic()
        if now < self.reported_at + REPORT_SECONDS:
            return False
        self.reported_at = now
        return True

    def answered(self) -> None:
        """Note that the key accepted a message, or refused one for good."""
        self.failures = 0
        self.blocked_until = float("-inf")
        self.failure = None

    def accepted(self) -> None:
        self.answered()
        self.failed_at = float("-inf")

    def failed(self) -> None:
        self.failures += 1
        self.failed_at = time.monotonic()

    def block(self, seconds: float) -> None:
        """Note a failure, and block the key for so many seconds."""
        self.failed()
        self.pause(seconds)

    def pause(self, seconds: float) -> None:
        self.blocked_until = time.monotonic() + seconds

    def try_now(self) -> None:
        """End the pause; a key that was blocked is tried with one message."""
        self.blocked_until = min(self.blocked_until, time.monotonic())


def record_in_order(health: KeyHealth, verdict: Verdict, rules: Rules) -> bool:
    """Update the key from an attempt of an ordered lane; return True if it blocks the lane.

    A skipped delivery says nothing about the lane. An endpoint is never called earlier than it
    requested, nor before the pause is over.
    """
    match verdict.step:
        case NextStep.AGAIN:
            health.block(verdict.wait_seconds or 0.0)
        case NextStep.BLOCK:
            pause = pause_seconds(rules, failures=health.failures + 1)
            health.block(max(verdict.wait_seconds or 0.0, pause))
        case NextStep.SUSPEND:
            health.failed()
        case NextStep.NEXT | NextStep.RETRY_LANE:
            health.answered()
    return verdict.step in (NextStep.AGAIN, NextStep.BLOCK)


def is_reached(outcome: Outcome, verdict: Verdict) -> bool:
    """Return whether an attempt shows that its endpoint is up: it accepted the message or refused.

    A message that FAILED, or waits for another attempt, shows the contrary or nothing.
    """
    is_settled = verdict.step is NextStep.NEXT and verdict.status is not Status.FAILED
    return outcome.outcome not in NEVER_CALLED and (
        is_settled or verdict.status is Status.DELIVERED
    )


def record_for_endpoint(
    health: KeyHealth, outcome: Outcome, verdict: Verdict, rules: Rules
) -> None:
    """Update the key from an attempt at its endpoint.

    An attempt that was never made changes nothing. A failure of an endpoint that is blocked already
    changes nothing either.
    """
    if outcome.outcome in NEVER_CALLED:
        return
    if verdict.status is Status.DELIVERED:
        health.accepted()
    elif is_reached(outcome, verdict):
        health.answered()
    elif health.is_blocked():
        return
    elif outcome.outcome in _UNREACHABLE or health.failures + 1 >= FAILURES_UNTIL_BLOCKED:
        pause = pause_seconds(rules, failures=health.failures + 1)
        health.block(max(requested_pause(outcome, rules) or 0.0, pause))
    else:
        health.failed()


class Keys:
    """The known keys of one lane, and the order in which they are served."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._is_ordered = window.is_ordered
        self._health: dict[Key, KeyHealth] = {}
        self._turns = itertools.count(1)
        # The number of attempts under way, of all keys.
        self.under_way = 0
        self._share = window.per_key or window.size

    @property
    def known(self) -> Collection[Key]:
        return self._health.keys()

    def add(self, key: Key, health: KeyHealth) -> None:
        self._health[key] = health

    def key_of(self, parcel: Parcel) -> Key:
        return WHOLE_LANE if self._is_ordered else parcel.key

    def health_of(self, parcel: Parcel) -> KeyHealth:
        return self.health(WHOLE_LANE if self._is_ordered else parcel.key)

    def health(self, key: Key) -> KeyHealth:
        health = self._health.get(key)
        if health is None:
            health = self._health[key] = KeyHealth()
        return health

    def blocked(self) -> list[Key]:
        """Return the keys to which nothing is sent now."""
        return [key for key, health in self._health.items() if health.is_blocked()]

    def may_try(self, key: Key) -> bool:
        return self.health(key).has_room(self._share)

    def enter(self, parcel: Parcel) -> None:
        """Count an attempt at the parcel's key."""
        health = self.health_of(parcel)
        health.under_way += 1
        self.under_way += 1
        health.turn = next(self._turns)

    def leave(self, parcel: Parcel) -> None:
        self.health_of(parcel).under_way -= 1
        self.under_way -= 1

    def divide(self, ready: Collection[Key]) -> None:
        """Set how many attempts a key may have under way: slow keys must leave room for others.

        Call it once for each group that is taken: the choice within the group uses the same share.
        """
        sharers = sum(not self.health(key).is_blocked() for key in ready)
        self._share = math.ceil(self._window.size / max(sharers, 1))

    def choose(self, parcels: Collection[Parcel]) -> Parcel | None:
        """Choose the parcel to try.

        Parcels that may have been sent before come first, keys that failed recently last; otherwise
        the key whose last turn is the longest ago is chosen. So the endpoints of a group share
        evenly, and one that recovers gets no more than its share.
        """
        candidates = [parcel for parcel in parcels if self.may_try(self.key_of(parcel))]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        random.shuffle(candidates)
        return min(candidates, key=self._rank)

    def _rank(self, parcel: Parcel) -> tuple[bool, bool, int]:
        health = self.health_of(parcel)
        return not parcel.redelivery, health.has_failed_lately(), health.turn

    def try_now(self) -> None:
        """End all pauses, because a person requested it or a subscription changed."""
        for health in self._health.values():
            health.try_now()
