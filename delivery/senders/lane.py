"""One lane as its sender keeps it in memory: what is read, what woke it, how it fares."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from delivery.senders.entries import Run
from delivery.senders.parcel import Parcel
from delivery.senders.request import Request


class Lane:
    """The state of serving one lane; the database has what must outlive the process.

    `news` is set when there is new work, `nudge` when a pause should end early and a run be read again: a
    person asked for it, or a subscription changed. `failures` counts tries in a row that
    led to nothing, `skip_failures` the same for the skipped deliveries alone. `request` is one made ahead.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.id: int = row["id"]
        self.capacity: int = row["max_queued_to_send"]
        self.refill_level: int = row["refill_level"]
        self.failures: int = row["failures"]
        self.paused_until: float | None = None
        if row["wait_seconds"] is not None:
            self.pause(row["wait_seconds"])
        self.queue: deque[Parcel] = deque()
        self.next_run: list[Parcel] = []
        self.news = asyncio.Event()
        self.nudge = asyncio.Event()
        self.request: Request | None = None
        self.skip_failures = 0
        self.skipped_due = 0.0
        self.sending_since: float | None = None
        self.is_yielding = False
        self.is_idle = False
        self.has_more = False
        self.refill: asyncio.Task[None] | None = None
        self.task: asyncio.Task[None] | None = None

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

    def wake(self) -> None:
        """There is a reason to look again, and to end a pause."""
        self.news.set()
        self.nudge.set()

    def give_back(self) -> None:
        """Let another sender have the lane, after the attempt that is under way."""
        self.is_yielding = True
        self.wake()

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
