"""A TOPIC lane as its sender keeps it in memory: what is read, how it fares."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from delivery.senders.entries import Run
from delivery.senders.lane import Lane
from delivery.senders.parcel import Endpoint, Parcel
from delivery.senders.request import Request


class TopicLane(Lane):
    """One subscriber's stream. A nudge ends its pause early, and lets a run be read again.

    `failures` counts tries in a row that led to nothing, `skip_failures` the same for the skipped
    deliveries alone. `request` is one made ahead.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(row["id"])
        self.capacity: int = row["max_queued_to_send"]
        self.refill_level: int = row["refill_level"]
        self.failures: int = row["failures"]
        self.paused_until: float | None = None
        if row["wait_seconds"] is not None:
            self.pause(row["wait_seconds"])
        self.queue: deque[Parcel] = deque()
        self.next_run: list[Parcel] = []
        self.request: Request | None = None
        self.skip_failures = 0
        self.skipped_due = 0.0
        self.sending_since: float | None = None
        self.is_idle = False
        self.has_more = False
        self.refill: asyncio.Task[None] | None = None

    @property
    def is_pausing(self) -> bool:
        return self.paused_until is not None

    @property
    def is_failing(self) -> bool:
        return self.failures > 0

    def is_hanging(self, *, since: float) -> bool:
        return self.sending_since is not None and self.sending_since < since

    def concerns(self, endpoint: Endpoint) -> bool:
        return endpoint.lane_id == self.id

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

    def pause(self, seconds: float) -> None:
        """Let it try again in so many seconds."""
        self.paused_until = time.monotonic() + seconds

    def take_next_run(self) -> list[Parcel]:
        """Begin the run that was read ahead, if any."""
        parcels, self.next_run = self.next_run, []
        self.queue.extend(parcels)
        return parcels

    def stop_reading_on(self) -> None:
        """Forget what was read ahead, or is being read: it is read again later."""
        self.next_run = []
        if self.refill is not None:
            self.refill.cancel()
            self.refill = None
