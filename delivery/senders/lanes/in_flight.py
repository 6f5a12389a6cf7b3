"""The work in flight in a lane: jobs, and attempts, which may be cut off.

The attempts are in the lane's run.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from delivery.senders.parcel import Key, Parcel


class AttemptInFlight:
    """A delivery; `task` waits for the answer `since` a moment of the monotonic clock."""

    __slots__ = ("key", "parcel", "since", "task")

    def __init__(self, parcel: Parcel, key: Key) -> None:
        self.parcel = parcel
        self.key = key
        self.since: float | None = None
        self.task: asyncio.Task[Any] | None = None


class InFlight:
    """The attempts of one lane that are recorded, or about to be."""

    def __init__(self) -> None:
        self._attempts: dict[int, AttemptInFlight] = {}
        # A probe is not an attempt: it is in no run.
        self._probe: tuple[float, asyncio.Task[Any] | None] | None = None

    def add(self, parcel: Parcel, key: Key) -> None:
        self._attempts[parcel.delivery_id] = AttemptInFlight(parcel, key)

    def begin(self, parcel: Parcel, task: asyncio.Task[Any] | None, *, now: float) -> None:
        """Note that the attempt waits for the answer in this task, and may be cut off."""
        attempt = self._attempts[parcel.delivery_id]
        attempt.since, attempt.task = now, task

    def remove(self, parcel: Parcel) -> None:
        self._attempts.pop(parcel.delivery_id, None)

    @property
    def parcels(self) -> list[Parcel]:
        return [attempt.parcel for attempt in self._attempts.values()]

    def is_tried(self, key: Key) -> bool:
        """True if an attempt there may yet succeed."""
        return any(attempt.key == key for attempt in self._attempts.values())

    @contextmanager
    def probing(self) -> Iterator[None]:
        """Register the current task as waiting for the answer to a probe."""
        self._probe = time.monotonic(), asyncio.current_task()
        try:
            yield
        finally:
            self._probe = None

    def is_hanging(self, *, since: float) -> bool:
        """True if an answer has been awaited since before `since`, of the monotonic clock."""
        return any(moment < since for moment, _ in self._waiting())

    def cut_off(self) -> None:
        """End the attempts and the probe that wait for their answers."""
        for _, task in self._waiting():
            if task is not None:
                task.cancel()

    def _waiting(self) -> list[tuple[float, asyncio.Task[Any] | None]]:
        jobs = [
            (attempt.since, attempt.task)
            for attempt in self._attempts.values()
            if attempt.since is not None
        ]
        return jobs if self._probe is None else [*jobs, self._probe]


class Jobs:
    """The sending tasks of one lane; `report` is called when a task ends, with its fault, if any.

    No task is cancelled while the sender lives: a commit must not be aborted.
    """

    def __init__(self, report: Callable[[Exception | None], None]) -> None:
        self._report = report
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def abandon(self) -> None:
        """Leave all tasks as a crash would: the sender itself ends."""
        for task in self._tasks:
            task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        self._report(fault if isinstance(fault, Exception) else None)
