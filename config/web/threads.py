"""The threads that call the application: a fixed number, and a fair queue of waiting calls.

Each known requester has a queue, and all anonymous clients share the queue ANONYMOUS; the threads
take from the queues in turn. Anonymous clients have few of the threads at once, because computing
threads compete with all others for Python's interpreter lock. So a flood of anonymous requests
delays a known requester little.

Leaner than a ThreadPoolExecutor behind `run_in_executor`, which creates two futures and takes
several locks for each call.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


ANONYMOUS = ""


class Threads(Generic[Task, Result]):
    """Calls `work` in `count` threads, started on demand."""

    def __init__(
        self,
        work: Callable[[Task], Result],
        *,
        count: int,
        anonymous: int | None = None,
        name: str = "web",
    ) -> None:
        self._work = work
        self._count = count
        self._name = name
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._lock = threading.Lock()
        self._queues: OrderedDict[str, deque[tuple[Task, asyncio.Future[Result]]]] = OrderedDict()
        # True for a waiting task that may run, None for a thread to be ended. An anonymous task
        # beyond the threads for anonymous clients gets a ticket when another such task is done.
        self._tickets: SimpleQueue[bool | None] = SimpleQueue()
        self._anonymous = count if anonymous is None else anonymous
        self._ticketed = 0
        self._running = 0

    async def call(self, task: Task, *, queue: str = ANONYMOUS) -> Result:
        """Run a task in a free thread, in the queue's turn; raise the task's exception.

        An exception fatal to the event loop, such as SystemExit, becomes a RuntimeError. Call this
        from the event loop's thread only.
        """
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if self._under_way >= len(self._threads) < self._count:
            self._start()
        self._under_way += 1
        with self._lock:
            self._queues.setdefault(queue, deque()).append((task, result))
            if queue != ANONYMOUS:
                self._tickets.put(True)
            elif self._ticketed < self._anonymous:
                self._ticketed += 1
                self._tickets.put(True)
        try:
            return await result
        finally:
            self._under_way -= 1

    @property
    def has_room_for_anonymous(self) -> bool:
        """Return whether an anonymous task would get a thread before other anonymous tasks end."""
        with self._lock:
            return self._ticketed < self._anonymous

    def close(self) -> None:
        """Wait until all queued tasks are done."""
        for _ in self._threads:
            self._tickets.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        # Daemon threads, so that a failing process ends at once.
        thread = threading.Thread(
            target=self._run, name=f"{self._name} {len(self._threads) + 1}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # The system has no thread left. Running threads take the task later.
            if not self._threads:
                raise
            return
        self._threads.append(thread)

    def _run(self) -> None:
        while self._tickets.get():
            queue, task, future = self._next()
            try:
                report = partial(future.set_result, self._work(task))
            except BaseException as error:  # noqa: BLE001  # The thread must survive any exception.
                report = partial(future.set_exception, _raisable(error))
            future.get_loop().call_soon_threadsafe(report)
            # Drop all references to the request before waiting for the next.
            del task, future, report
            if queue == ANONYMOUS:
                self._end_anonymous()

    def _next(self) -> tuple[str, Task, "asyncio.Future[Result]"]:
        with self._lock:
            for name in self._queues:
                # There is another queue then, because each ticket belongs to a task that may run.
                if name != ANONYMOUS or self._running < self._anonymous:
                    break
            queue = self._queues[name]
            task, future = queue.popleft()
            if queue:
                self._queues.move_to_end(name)
            else:
                del self._queues[name]
            if name == ANONYMOUS:
                self._running += 1
        return name, task, future

    def _end_anonymous(self) -> None:
        with self._lock:
            self._running -= 1
            if len(self._queues.get(ANONYMOUS, ())) > self._ticketed - 1 - self._running:
                self._tickets.put(True)
            else:
                self._ticketed -= 1


def _raisable(error: BaseException) -> Exception:
    """Return an exception a future takes, and the event loop survives."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__} in a thread")
    wrapped.__cause__ = error
    return wrapped
