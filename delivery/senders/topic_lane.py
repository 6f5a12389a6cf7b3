"""A TOPIC lane as its sender keeps it in memory: what is read, how it fares."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from delivery.senders.entries import Run
from delivery.senders.lane import Lane
from delivery.senders.parcel import Parcel
from delivery.senders.request import Request
from delivery.states import LaneState

Answer = TypeVar("Answer")


class TopicLane(Lane):
    """One subscriber's stream. A nudge ends its pause early, and lets a run be read again.

    While it `is_suspended` it pauses until the next probe, or for ever.

    `failures` counts tries in a row that led to nothing, `skip_failures` the same for the skipped
    deliveries alone. `request` is one made ahead.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(row)
        self.capacity: int = row["max_queued_to_send"]
        self.refill_level: int = row["refill_level"]
        self.failures: int = row["failures"]
        self.paused_until: float | None = None
        if row["wait_seconds"] is not None:
            self.pause(row["wait_seconds"])
        self.is_suspended: bool = row["state"] == LaneState.SUSPENDED
        # Whether its row says so.
        self.is_blocked: bool = row["state"] == LaneState.BLOCKED
        # Whether a probe has resumed it, and nothing was delivered since.
        self.is_on_trial = False
        if self.is_suspended:
            self.pause(row["wait_seconds"])
            # Its new sender has to see why, before it can hear of what changes that.
            self.nudge.set()
        self.queue: deque[Parcel] = deque()
        self.next_run: list[Parcel] = []
        self.request: Request | None = None
        self.skip_failures = 0
        self.skipped_due = 0.0
        self.sending_since: float | None = None
        # How many deliveries the run has that was recorded last.
        self.recorded = 0
        self.has_more = False
        self.refill: asyncio.Task[None] | None = None

    @property
    def is_pausing(self) -> bool:
        return self.paused_until is not None

    def is_hanging(self, *, since: float) -> bool:
        return self.sending_since is not None and self.sending_since < since

    def cut_off(self) -> None:
        if self.sending_since is not None and self.task is not None:
            self.task.cancel()

    def run(self, *extra: Parcel) -> Run:
        """What is to be recorded: everything still to be sent, in order."""
        parcels = [*self.queue, *self.next_run, *extra]
        return Run(
            lane_id=self.id,
            ids=tuple(parcel.delivery_id for parcel in parcels),
            attempts=tuple(parcel.attempts for parcel in parcels),
        )

    def pause(self, seconds: float | None) -> None:
        """Let it try again in so many seconds, or when it is nudged."""
        self.paused_until = time.monotonic() + (math.inf if seconds is None else seconds)

    def pause_left(self) -> float:
        return 0.0 if self.paused_until is None else max(self.paused_until - time.monotonic(), 0.0)

    async def wait_out_pause(self) -> None:
        """Wait until the pause is over, or somebody nudges the lane."""
        if seconds := self.pause_left():
            await wait_for(self.nudge, seconds)

    async def sending(self, attempt: Coroutine[Any, Any, Answer]) -> Answer:
        """Make an attempt; while it lasts the lane is hanging, if it lasts long, and may be cut off."""
        self.sending_since = time.monotonic()
        try:
            return await attempt
        finally:
            self.sending_since = None

    def take_next_run(self) -> list[Parcel]:
        """Begin the run that was read ahead, if any."""
        parcels, self.next_run = self.next_run, []
        self.queue.extend(parcels)
        return parcels

    def forget_runs(self) -> None:
        """Forget what is read and not sent: it is read again."""
        self.stop_reading_on()
        self.queue.clear()

    def stop_reading_on(self) -> None:
        """Forget what was read ahead, or is being read: it is read again later."""
        self.next_run = []
        if self.refill is not None:
            self.refill.cancel()
            self.refill = None


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event so long; False when it did not come."""
    try:
        await asyncio.wait_for(event.wait(), None if seconds == math.inf else seconds)
    except TimeoutError:
        return False
    return True
