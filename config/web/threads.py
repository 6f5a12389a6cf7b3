"""The threads that call the application: a fixed number, with a queue of waiting calls.

Leaner than a ThreadPoolExecutor behind `run_in_executor`, which creates two futures and takes
several locks for each call.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Told = TypeVar("Told")


class Threads(Generic[Asked, Told]):
    """Calls `work` in one of `count` threads, started on demand; `work` must not raise."""

    def __init__(self, work: Callable[[Asked], Told], *, count: int) -> None:
        self._work = work
        self._count = count
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._asked: SimpleQueue[tuple[Asked, asyncio.Future[Told]] | None] = SimpleQueue()

    async def call(self, asked: Asked) -> Told:
        """Run a task in the next free thread; call this from the event loop's thread only."""
        told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        if self._under_way >= len(self._threads) < self._count:
            self._start()
        self._under_way += 1
        self._asked.put((asked, told))
        try:
            return await told
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Wait until all queued tasks are done."""
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        # Daemon threads, so that a failing process ends whatever they do.
        thread = threading.Thread(target=self._run, name=f"web {len(self._threads) + 1}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            question, future = asked
            told = self._work(question)
            future.get_loop().call_soon_threadsafe(future.set_result, told)
            # Drop all references to the request before waiting for the next.
            del asked, question, future, told
