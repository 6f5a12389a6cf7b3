"""The tasks that send for a lane. None is cancelled while the sender lives: a commit must not be broken off."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Jobs:
    """Tells when one has ended, and the fault it ended with, if any."""

    def __init__(self, tell: Callable[[Exception | None], None]) -> None:
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def abandon(self) -> None:
        """Leave all as a crash would: the sender itself ends."""
        for task in self._tasks:
            task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        self._tell(fault if isinstance(fault, Exception) else None)
