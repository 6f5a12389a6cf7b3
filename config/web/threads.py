"""The threads that call the application: a fixed number, with a queue of waiting calls.

Leaner than a ThreadPoolExecutor behind `run_in_executor`, which creates two futures and takes
several locks for each call.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Threads(Generic[Task, Result]):
    """Calls `work` in one of `count` threads, started on demand; `work` must not raise."""

    def __init__(self, work: Callable[[Task], Result], *, count: int) -> None:
        self._work = work
        self._count = count
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._waiting: SimpleQueue[tuple[Task, asyncio.Future[Result]] | None] = SimpleQueue()

    async def call(self, task: Task) -> Result:
        """Run a task in the next free thread; call this from the event loop's thread only."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if self._under_way >= len(self._threads) < self._count:
            self._start()
        self._under_way += 1
        self._waiting.put((task, result))
        try:
            return await result
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Wait until all queued tasks are done."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        # Daemon threads, so that a failing process ends whatever they do.
        thread = threading.Thread(
            target=self._run, name=f"web {len(self._threads) + 1}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            task, future = waiting
            result = self._work(task)
            future.get_loop().call_soon_threadsafe(future.set_result, result)
            # Drop all references to the request before waiting for the next.
            del waiting, task, future, result
