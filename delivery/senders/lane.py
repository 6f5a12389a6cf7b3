"""One lane as its sender keeps it in memory: what is read, what woke it, how it fares."""

import asyncio
from collections import deque
from collections.abc import Mapping
from datetime import datetime
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
        self.next_try_at: datetime | None = row["next_try_at"]
        self.queue: deque[Parcel] = deque()
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
        parcels = [*self.queue, *extra]
        return Run(
            lane_id=self.id,
            ids=tuple(parcel.delivery_id for parcel in parcels),
            attempts=tuple(parcel.attempts for parcel in parcels),
        )

    def wake(self) -> None:
        """There is a reason to look again, and to end a pause."""
        self.news.set()
        self.nudge.set()

    def give_back(self) -> None:
        """Let another sender have the lane, after the attempt that is under way."""
        self.is_yielding = True
        self.wake()

    def stop_reading_on(self) -> None:
        """Forget a refill under way: its deliveries are read again later."""
        if self.refill is not None:
            self.refill.cancel()
            self.refill = None
