"""What people are told of a CONCURRENT subscriber's endpoints that are down: its lane is BLOCKED.

    SENDING ── an endpoint is down, and nothing under way there may tell otherwise ──▶ BLOCKED ── it takes one ──▶ SENDING
                                                                                        │  ▲
                                                                                        └──┘ it is down still

The lane's row names the delivery that failed last, why, and when the endpoint is tried again, with one message. The
subscriber's other endpoints flow meanwhile: the lane is BLOCKED as long as one of them is down. It stays so while nobody
serves it; its next sender begins with what the row says. A delivery that a person settled, or whose subscription was made INACTIVE, is
no reason any more: that is looked for when the lane is nudged, and before it would become idle.

All here is memory; a change is handed in at the moment it is decided, in the order of decisions, so the row says the last.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from delivery.senders.entries import LaneChange
from delivery.senders.health import Health
from delivery.senders.parcel import Parcel, Place
from delivery.states import LaneState


@dataclass(frozen=True, slots=True)
class Outage:
    """The delivery that an endpoint took last of those it failed with, and why it failed."""

    delivery_id: int
    reason: str
    health: Health


class Outages:
    """The endpoints of a lane that people know to be down, since longest first."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._lane_id: int = row["id"]
        self._known: dict[Place, Outage] = {}
        is_stopped = row["state"] in (LaneState.BLOCKED, LaneState.SUSPENDED)
        # Who served it in order has stopped it for one delivery: no reason for any other to wait.
        self.were_in_order: bool = is_stopped and not row["run_is_concurrent"]
        if is_stopped and not self.were_in_order and row["head_subscription_id"] is not None:
            wait = max(row["wait_seconds"] or 0.0, 0.0)
            health = Health(failures=max(row["failures"], 1), down_until=time.monotonic() + wait)
            self._known[row["head_subscription_id"]] = Outage(row["delivery_id"], row["reason"], health)

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def places(self) -> Collection[Place]:
        return self._known.keys()

    @property
    def deliveries(self) -> list[int]:
        return [outage.delivery_id for outage in self._known.values()]

    def health(self) -> dict[Place, Health]:
        """How those endpoints fare, as the lane's last sender left it."""
        return {place: outage.health for place, outage in self._known.items()}

    def begin(self, parcel: Parcel, health: Health, *, reason: str) -> LaneChange:
        """The endpoint is down, as this parcel has shown last."""
        self._known[parcel.place] = Outage(parcel.delivery_id, reason, health)
        return self._change()

    def end(self, place: Place) -> list[LaneChange]:
        """The endpoint takes messages; return what that changes."""
        return [self._change()] if self._known.pop(place, None) else []

    def forget(self, delivery_ids: Collection[int]) -> list[LaneChange]:
        """These deliveries are no reason any more; return what that changes."""
        kept = {
            place: outage for place, outage in self._known.items() if outage.delivery_id not in delivery_ids
        }
        is_changed = len(kept) < len(self._known)
        self._known = kept
        return [self._change()] if is_changed else []

    def _change(self) -> LaneChange:
        if not self._known:
            return LaneChange(lane_id=self._lane_id, state=LaneState.SENDING, ends_run=False)
        outage = next(iter(self._known.values()))
        return LaneChange(
            lane_id=self._lane_id,
            state=LaneState.BLOCKED,
            reason=outage.reason,
            delivery_id=outage.delivery_id,
            failures=outage.health.failures,
            wait_seconds=max(outage.health.down_until - time.monotonic(), 0.0),
            ends_run=False,
        )
