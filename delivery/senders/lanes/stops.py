"""What waits in a lane, and for how long: its stops, and their rows.

A stop is a blocked key, a suspension, or a pause of skipped deliveries. Each blocked endpoint has a
row (`EndpointHealth`), and the lane's row has the values of the endpoint that has been blocked
longest; see *States* and *Health of endpoints* in `senders/README.md`. Methods return row changes,
to be handed in at the moment of the decision, so that the rows always have the latest.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from delivery.outcome import Outcome
from delivery.senders.entries import Change, EndpointChange, LaneChange
from delivery.senders.lanes.runs import EARLY_ATTEMPT_SECONDS, Runs
from delivery.senders.lanes.stock import Failure, KeyHealth, Keys
from delivery.senders.lanes.window import WHOLE_LANE, WaitsBy, Window
from delivery.senders.parcel import Key, Parcel
from delivery.senders.run_result import RunResult
from delivery.states import NEVER_CALLED, LaneState, OutcomeClass, Status
from delivery.verdict import NextStep, Rules, Verdict, pause_seconds, requested_pause

REVIEW_SECONDS = 5.0
# After this many failures in a row an endpoint is blocked, even if it answers.
FAILURES_UNTIL_BLOCKED = 5

_STOPPED = frozenset({LaneState.BLOCKED, LaneState.SUSPENDED})
_FREEING = frozenset({NextStep.NEXT, NextStep.RETRY_LANE})
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


def record_in_order(health: KeyHealth, verdict: Verdict, rules: Rules) -> bool:
    """Update the key from an attempt where a failed delivery may stay first; True if it blocks.

    A skipped delivery says nothing about the key. An endpoint is never called earlier than it
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
    """Return whether an attempt shows that the endpoint is up: it accepted or refused the message.

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

    An attempt that was never made changes nothing, nor does a failure while the key is blocked.
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


class Stops:
    """The stops of a lane.

    `is_tried`: whether an attempt at a key is in flight; `forget` drops the deliveries not begun.
    """

    def __init__(
        self,
        row: Mapping[str, Any],
        window: Window,
        keys: Keys,
        *,
        is_tried: Callable[[Key], bool],
        forget: Callable[[], object],
    ) -> None:
        self._lane_id: int = row["id"]
        self._window = window
        self._is_tried = is_tried
        self._forget = forget
        self._keys = keys
        self._waits_as_whole = window.waits_by is WaitsBy.LANE
        self.runs = Runs()
        # The failures that are in rows, the longest first.
        self._known: dict[Key, Failure] = {}
        # The endpoints that are DOWN by their rows, whether they stop anything or not.
        self._down: set[Key] = {down["subscription_id"] for down in row["down"] or []}
        self._reviewed_at = float("-inf")
        self.is_suspended = self._waits_as_whole and row["state"] == LaneState.SUSPENDED
        self._suspended_until = float("-inf")
        # Whether a probe has resumed the lane, and nothing was delivered since.
        self.is_on_trial = False
        is_stopped = row["state"] in _STOPPED
        # A delivery had stopped the whole lane: here the endpoints need not wait for that pause.
        waited_as_whole = is_stopped and not row["run_is_concurrent"]
        if self.is_suspended:
            self.stay_suspended(row["wait_seconds"])
        if self._waits_as_whole:
            if is_stopped:
                self._begin_blocked(WHOLE_LANE, row)
        elif window.blocks_keys and not waited_as_whole:
            for down in row["down"] or []:
                self._begin_blocked(down["subscription_id"], down)
            if window.reports_blocked and not is_stopped:
                # The endpoints only wait: they stopped nothing.
                self._known.clear()
        self._has_stale_stop = is_stopped and not self._known

    def _begin_blocked(self, key: Key, row: Mapping[str, Any]) -> None:
        blocked_until = time.monotonic() + max(row["wait_seconds"] or 0.0, 0.0)
        health = KeyHealth(failures=max(row["failures"], 1), blocked_until=blocked_until)
        health.failure = self._known[key] = Failure(row["delivery_id"], row["reason"])
        self._keys.add(key, health)

    def begin(self) -> list[Change]:
        """Return the first row change: a stopped lane without a DOWN endpoint flows."""
        if not self._has_stale_stop:
            return []
        reason = "Nothing stops it any more."
        return [LaneChange(lane_id=self._lane_id, state=LaneState.IDLE, reason=reason)]

    @property
    def pause(self) -> tuple[int, int] | None:
        """The delivery and failures of the pause in the lane's row, which a person may end."""
        if not (self._known and self._window.reports_blocked):
            return None
        key, failure = next(iter(self._known.items()))
        health = self._keys.health(key)
        is_pause = self.is_suspended or health.is_blocked() or self.runs.seconds_left > 0
        return (failure.delivery_id, health.failures) if is_pause else None

    @property
    def is_blocked(self) -> bool:
        """True if rows record a blocked key."""
        return bool(self._known)

    @property
    def whole(self) -> KeyHealth:
        """The health of the lane itself, if it waits as a whole."""
        return self._keys.health(WHOLE_LANE)

    def end_whole(self) -> list[Change]:
        """End the stop of the whole lane, in which nothing waits."""
        self.whole.answered()
        return self.end(WHOLE_LANE)

    def record_outcome(
        self, parcel: Parcel, outcome: Outcome, verdict: Verdict, rules: Rules
    ) -> list[Change]:
        """Update the stops from the result of an attempt."""
        if self._window.may_stay_first:
            return self._record_in_order(parcel, outcome, verdict, rules)
        key = self._window.key_of(parcel)
        health = self._keys.health(key)
        if self._window.blocks_keys or verdict.status is Status.DELIVERED:
            record_for_endpoint(health, outcome, verdict, rules)
        if not self._window.blocks_keys:
            is_news = is_reached(outcome, verdict) and health.is_report_due()
            return self.changes(key) if is_news else []
        if is_reached(outcome, verdict):
            return self.end(key)
        return self.report(parcel, reason="" if outcome.outcome in NEVER_CALLED else outcome.reason)

    def _record_in_order(
        self, parcel: Parcel, outcome: Outcome, verdict: Verdict, rules: Rules
    ) -> list[Change]:
        key = self._window.key_of(parcel)
        self.is_on_trial &= verdict.status is not Status.DELIVERED
        if record_in_order(self._keys.health(key), verdict, rules):
            self.runs.block(parcel.subscription_id)
            return self._block(parcel.delivery_id, parcel.subscription_id, reason=outcome.reason)
        if verdict.step not in _FREEING:
            return []
        if not is_reached(outcome, verdict):
            return self.end(key)
        self.runs.reach(parcel.subscription_id)
        return [*self.end(key), *self.up(parcel.subscription_id)]

    def record_fault(self, parcel: Parcel, rules: Rules, *, fault: str) -> list[Change]:
        """Block a key whose endpoint a fault of ours keeps from being called, until it is fixed."""
        health = self._keys.health_of(parcel)
        if not health.is_blocked():
            health.block(pause_seconds(rules, failures=health.failures + 1))
        if self._waits_as_whole:
            self.runs.block(parcel.subscription_id)
            return self._block(parcel.delivery_id, parcel.subscription_id, reason=fault)
        return self.report(parcel, reason=fault)

    def record_run(self, result: RunResult) -> list[Change]:
        """Pause at the end of a run that settled nothing; see `RunResult`."""
        if result.goes_on:
            return []
        health = self.whole
        if result.is_early:
            if not result.settled:
                health.pause(min(EARLY_ATTEMPT_SECONDS, self.runs.seconds_left))
            return []
        self.runs.record(result)
        is_sick = result.is_fruitless and (result.fresh_failed or health.failures)
        if not is_sick or result.rules is None or result.failed is None:
            return []
        pause = pause_seconds(result.rules, failures=health.failures + 1)
        self.runs.pause(pause, result.failed_subscriptions)
        health.block(min(pause, EARLY_ATTEMPT_SECONDS))
        return self._block(result.failed, result.failed_subscription_id, reason=result.reason)

    def _block(self, delivery_id: int, subscription_id: int, *, reason: str) -> list[Change]:
        """Block the whole lane: all that it has read is read again."""
        self._forget()
        self._known[WHOLE_LANE] = Failure(delivery_id, reason)
        self._down.add(subscription_id)
        return self.changes(WHOLE_LANE)

    def up(self, key: Key) -> list[Change]:
        """Return the row change of an endpoint that was reached, if its row says DOWN."""
        if key not in self._down or not isinstance(key, int):
            return []
        self._down.remove(key)
        return [EndpointChange(lane_id=self._lane_id, subscription_id=key)]

    def report(self, parcel: Parcel, *, reason: str = "") -> list[Change]:
        """Return the row changes of an endpoint that was not reached; none ends the row.

        Without a `reason` the endpoint was not tried. A block is recorded when no attempt is in
        flight there any more, however the last attempt ended. The server of a callback gets no row:
        it is no subscription's endpoint.
        """
        key = self._window.key_of(parcel)
        health = self._keys.health(key)
        if not self._window.blocks_keys or isinstance(key, str):
            return []
        if reason and health.is_blocked():
            health.failure = Failure(parcel.delivery_id, reason)
        is_new = health.failure is not None and self._known.get(key) is not health.failure
        if not is_new or not health.is_blocked() or self._is_tried(key):
            return []
        assert health.failure is not None
        self._known[key] = health.failure
        self._down.add(key)
        return self.changes(key)

    def end(self, key: Key) -> list[Change]:
        """End the stop of a key that was reached, or for which nothing waits."""
        if not self._known.pop(key, None):
            return self.up(key)
        self.runs.flow()
        self._down.discard(key)
        return self.changes(key)

    def forget(self, quiet: Collection[Key], *, gone: Collection[Key]) -> list[Change]:
        """End the stops of DOWN endpoints for which nothing waits, and of endpoints that are UP."""
        self._down.difference_update(gone)
        ended = [key for key in self._known if key in quiet or key in gone]
        for key in ended:
            del self._known[key]
            self._keys.health(key).failure = None
        return self.changes() if ended else []

    def changes(self, *keys: Key) -> list[Change]:
        """Return the row changes of the lane, whose run ends if it is stopped, and of the keys."""
        changes: list[Change] = []
        if self._window.reports_blocked:
            ends_run = self._window.records_ahead and self.is_blocked
            state = LaneState.BLOCKED if self.is_blocked else LaneState.IDLE
            longest = next(iter(self._known), WHOLE_LANE)
            changes.append(
                LaneChange(state=state, ends_run=ends_run, **self._failure_columns(longest))
            )
        endpoints = [key for key in keys if isinstance(key, int)]
        changes += [
            EndpointChange(subscription_id=key, **self._failure_columns(key)) for key in endpoints
        ]
        return changes

    def _failure_columns(self, key: Key) -> dict[str, Any]:
        failure = self._known.get(key)
        if failure is None:
            return {"lane_id": self._lane_id}
        health = self._keys.health(key)
        return {
            "lane_id": self._lane_id,
            "reason": failure.reason,
            "delivery_id": failure.delivery_id,
            "failures": health.failures,
            "wait_seconds": max(health.seconds_left, self.runs.seconds_left),
        }

    def suspend(
        self, delivery_id: int, subscription_id: int, *, reason: str, wait_seconds: float | None
    ) -> LaneChange:
        """Suspend the lane until it is resumed; a probe is due in so many seconds, or never."""
        self.is_suspended = True
        self._block(delivery_id, subscription_id, reason=reason)
        self.stay_suspended(wait_seconds)
        return LaneChange(
            lane_id=self._lane_id,
            state=LaneState.SUSPENDED,
            reason=reason,
            delivery_id=delivery_id,
            failures=self.whole.failures,
            wait_seconds=wait_seconds,
        )

    def stay_suspended(self, wait_seconds: float | None) -> None:
        wait = math.inf if wait_seconds is None else wait_seconds
        self._suspended_until = time.monotonic() + wait

    @property
    def suspended_left(self) -> float:
        """The seconds until a probe is due."""
        return max(self._suspended_until - time.monotonic(), 0.0)

    def resume(self, *, is_on_trial: bool, reason: str) -> LaneChange:
        """End the suspension because its reason is gone."""
        self.is_suspended = False
        self._known.clear()
        self.is_on_trial = is_on_trial
        self.whole.answered()
        return LaneChange(lane_id=self._lane_id, state=LaneState.IDLE, reason=reason)

    def resume_blocked(self, delivery_id: int, *, reason: str) -> None:
        """Resume for a person; the row says BLOCKED until a delivery is delivered."""
        self.is_suspended = False
        self._keys.add(WHOLE_LANE, KeyHealth(failures=1))
        self._known[WHOLE_LANE] = Failure(delivery_id, reason)

    @property
    def down(self) -> Collection[Key]:
        """The endpoints that are down; none if the lane waits as a whole: a read shows the stop."""
        return [] if self._waits_as_whole else list(self._known)

    @property
    def is_review_due(self) -> bool:
        return bool(self.down) and time.monotonic() >= self._reviewed_at + REVIEW_SECONDS

    def begin_review(self) -> Collection[Key]:
        """Return the endpoints that are down, and neither blocked nor tried: their rows exist."""
        self._reviewed_at = time.monotonic()
        health = {key: self._keys.health(key) for key in self.down}
        return [key for key in health if not (health[key].is_blocked() or health[key].in_flight)]
