"""What people are told of a CONCURRENT subscriber's endpoints that are down: its lane is BLOCKED.

    FLOWING ── an endpoint is down, and nothing under way there may tell otherwise ──▶ BLOCKED ── it takes one ──▶ FLOWING
                                                                                        │  ▲
                                                                                        └──┘ it is down still

The lane's row names the delivery that failed last, why, and when the endpoint is tried again, with one
message. The subscriber's other endpoints flow meanwhile: the lane is BLOCKED as long as one of them is down.
While nobody serves it it stays so; what is BLOCKED always has a sender soon, who begins with what the row
says.

A delivery that is settled, went to the retry lane, or is held by an INACTIVE subscription is no reason any
more once its endpoint's pause is over: nothing may ever be sent there that could end it. That is looked for
every few seconds, however busy the lane is, and when it is given back. Not before: it would flow and be
BLOCKED by turns, with each VOLATILE message that fails. A nudge ends the pauses, so after that it is looked
for at once.

All here is memory; a change is handed in at the moment it is decided, in the order of decisions, so the row
says the last. The row has the pause of the endpoint that is down longest; whether that was moved by a person
is seen by comparing with what was handed in, not with how the endpoints fare since.
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
        self._suspected: dict[Place, Outage] = {}
        self._told_until = float("-inf")
        is_stopped = row["state"] in (LaneState.BLOCKED, LaneState.SUSPENDED)
        # Who served it in order has stopped it for one delivery: no reason for any other to wait.
        self.were_in_order: bool = is_stopped and not row["run_is_concurrent"]
        if is_stopped and not self.were_in_order and row["head_subscription_id"] is not None:
            wait = max(row["wait_seconds"] or 0.0, 0.0)
            self._told_until = time.monotonic() + wait
            health = Health(failures=max(row["failures"], 1), down_until=self._told_until)
            self._known[row["head_subscription_id"]] = Outage(row["delivery_id"], row["reason"], health)

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def is_pausing(self) -> bool:
        """Whether the lane's row, as we have left it, tells of a pause that is not over."""
        return bool(self._known) and time.monotonic() < self._told_until

    @property
    def deliveries(self) -> Mapping[Place, int]:
        """What stops the lane at each place."""
        return {place: outage.delivery_id for place, outage in self._known.items()}

    def try_now(self) -> None:
        """The pause is over, whatever the row says: a person has ended it."""
        self._told_until = float("-inf")

    def health(self) -> dict[Place, Health]:
        """How those endpoints fare, as the lane's last sender left it."""
        return {place: outage.health for place, outage in self._known.items()}

    def suspect(self, parcel: Parcel, health: Health, *, reason: str) -> None:
        """The endpoint is down, as this parcel has shown last, unless what is under way there tells otherwise."""
        self._suspected[parcel.place] = Outage(parcel.delivery_id, reason, health)

    def begin(self, place: Place) -> list[LaneChange]:
        """What was suspected is so; return what that changes."""
        if place not in self._suspected:
            return []
        self._known[place] = self._suspected.pop(place)
        return [self.change()]

    def end(self, place: Place) -> list[LaneChange]:
        """The endpoint takes messages; return what that changes."""
        self._suspected.pop(place, None)
        return [self.change()] if self._known.pop(place, None) else []

    def forget(self, delivery_ids: Collection[int]) -> list[LaneChange]:
        """These deliveries are no reason any more; return what that changes."""
        kept = {
            place: outage for place, outage in self._known.items() if outage.delivery_id not in delivery_ids
        }
        is_changed = len(kept) < len(self._known)
        self._known = kept
        return [self.change()] if is_changed else []

    def change(self) -> LaneChange:
        """What the lane's row is to say now."""
        if not self._known:
            return LaneChange(lane_id=self._lane_id, state=LaneState.IDLE, ends_run=False)
        outage = next(iter(self._known.values()))
        self._told_until = outage.health.down_until
        return LaneChange(
            lane_id=self._lane_id,
            state=LaneState.BLOCKED,
            reason=outage.reason,
            delivery_id=outage.delivery_id,
            failures=outage.health.failures,
            wait_seconds=max(outage.health.down_until - time.monotonic(), 0.0),
            ends_run=False,
        )
