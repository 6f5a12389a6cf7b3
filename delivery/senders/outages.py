"""What a lane's row says of its blocked keys: the lane is BLOCKED as long as one of them is.

    FLOWING ── a key is blocked, and nothing under way there may tell otherwise ──▶ BLOCKED ── it takes one ──▶ FLOWING
                                                                                     │  ▲
                                                                                     └──┘ it is blocked still

The row names the delivery that failed last, why, and when the key is tried again, with one message. The other
endpoints of a CONCURRENT subscriber flow meanwhile. While nobody serves the lane it stays BLOCKED; such a lane always has a
sender soon, who begins with what the row says.

A delivery that is settled, went to the retry lane, or is held by an INACTIVE subscription is no reason any
more once its endpoint's pause is over: nothing may ever be sent there that could end it. That is looked for
every few seconds, however busy the lane is, and when it is given back. Not before: it would flow and be
BLOCKED by turns, with each VOLATILE message that fails. A nudge ends the pauses, so after that it is looked
for at once. An ordered lane reads again after its pause; when it finds nothing to send, nothing stops it.

All here is memory. A change is handed in at the moment it is decided, in the order of decisions, so the row
says the last. The row has the pause of the key that is blocked longest; whether that was moved by a person
is seen by comparing with what was committed, not with how the endpoints fare since.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from delivery.senders.entries import LaneChange
from delivery.senders.keys import Health
from delivery.senders.parcel import Key
from delivery.senders.window import WHOLE_LANE, Window
from delivery.states import LaneState


@dataclass(frozen=True, slots=True)
class Outage:
    """The delivery that failed last at a blocked key, and why."""

    delivery_id: int
    reason: str
    health: Health


class Outages:
    """The keys of a lane that people know to be blocked, since longest first."""

    def __init__(self, row: Mapping[str, Any], window: Window) -> None:
        self._lane_id: int = row["id"]
        self._is_ordered = window.is_ordered
        self._known: dict[Key, Outage] = {}
        self._suspected: dict[Key, Outage] = {}
        # When the pause ends that the row tells of, and the same of what was handed in last.
        self._told_until = self._telling_until = float("-inf")
        is_stopped = row["state"] == LaneState.BLOCKED or (
            row["state"] == LaneState.SUSPENDED and not self._is_ordered
        )
        # Who served it in order has stopped it for one delivery: no reason for any other to wait.
        self.were_in_order: bool = is_stopped and not self._is_ordered and not row["run_is_concurrent"]
        key = WHOLE_LANE if self._is_ordered else row["head_subscription_id"]
        if is_stopped and not self.were_in_order and key is not None:
            self._told_until = time.monotonic() + max(row["wait_seconds"] or 0.0, 0.0)
            health = Health(failures=max(row["failures"], 1), blocked_until=self._told_until)
            self._known[key] = Outage(row["delivery_id"], row["reason"], health)

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def is_pausing(self) -> bool:
        """Whether the lane's row, as we have left it, tells of a pause that is not over."""
        return bool(self._known) and time.monotonic() < self._told_until

    @property
    def deliveries(self) -> Mapping[Key, int]:
        """What stops the lane at each key."""
        return {key: outage.delivery_id for key, outage in self._known.items()}

    def health(self) -> dict[Key, Health]:
        """How those keys fare, as the lane's last sender left it."""
        return {key: outage.health for key, outage in self._known.items()}

    def try_now(self) -> None:
        """The pause is over, whatever the row says: a person has ended it."""
        self._told_until = self._telling_until = float("-inf")

    def told(self) -> None:
        """The last change is on disk."""
        self._told_until = self._telling_until

    def suspect(self, key: Key, delivery_id: int, health: Health, *, reason: str) -> None:
        """The key is blocked, as this delivery has shown last, unless what is under way there tells otherwise."""
        self._suspected[key] = Outage(delivery_id, reason, health)

    def begin(self, key: Key) -> list[LaneChange]:
        """What was suspected is so; return what that changes."""
        if key not in self._suspected:
            return []
        self._known[key] = self._suspected.pop(key)
        return [self.change()]

    def end(self, key: Key) -> list[LaneChange]:
        """The key takes messages; return what that changes."""
        self._suspected.pop(key, None)
        return [self.change()] if self._known.pop(key, None) else []

    def forget(self, delivery_ids: Collection[int]) -> list[LaneChange]:
        """These deliveries are no reason any more; return what that changes."""
        kept = {key: outage for key, outage in self._known.items() if outage.delivery_id not in delivery_ids}
        is_changed = len(kept) < len(self._known)
        self._known = kept
        return [self.change()] if is_changed else []

    def change(self) -> LaneChange:
        """What the lane's row is to say now. An ordered lane that is blocked has no run."""
        if not self._known:
            return LaneChange(lane_id=self._lane_id, state=LaneState.IDLE, ends_run=False)
        outage = next(iter(self._known.values()))
        self._telling_until = outage.health.blocked_until
        return LaneChange(
            lane_id=self._lane_id,
            state=LaneState.BLOCKED,
            reason=outage.reason,
            delivery_id=outage.delivery_id,
            failures=outage.health.failures,
            wait_seconds=max(outage.health.blocked_until - time.monotonic(), 0.0),
            ends_run=self._is_ordered,
        )
