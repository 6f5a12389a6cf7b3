"""The threads that call the application: a fixed number, and a queue for what has to wait.

Leaner than a ThreadPoolExecutor behind `run_in_executor`, which makes two futures and takes several locks a call.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Told = TypeVar("Told")


class Threads(Generic[Asked, Told]):
    """Calls `work` in one of `count` threads, which are started when they are needed; `work` must not raise."""

    def __init__(self, work: Callable[[Asked], Told], *, count: int) -> None:
        self._work = work
        self._count = count
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._asked: SimpleQueue[tuple[Asked, asyncio.Future[Told]] | None] = SimpleQueue()

    async def call(self, asked: Asked) -> Told:
        """Have it done by the next thread that is free; for the event loop's thread only."""
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
        """Wait until all that was asked is done."""
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        # Daemons: a process that fails must end, whatever its threads do.
        thread = threading.Thread(target=self._run, name=f"web {len(self._threads) + 1}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            question, future = asked
            told = self._work(question)
            future.get_loop().call_soon_threadsafe(future.set_result, told)
            # Nothing of a request is kept until the next comes.
            del asked, question, future, told
