"""The senders' HTTP client in an event loop of this process, for waiting threads.

SYNC calls, test messages, alerts to chats and the checks of `doctor` are made by threads. They
share a client: guard of addresses, connections and words for faults are those of the senders, and a
slow endpoint occupies the waiting thread, but not the loop.

    not started ──▶ open (at the first call, again after a fork) ──▶ closed (when Python exits)

- *Forks.* A forked process has neither the thread nor the right to use the parent's connections: it
  forgets both, closes nothing, and opens other ones at the first call.
- *Stop.* The thread is a daemon, and whoever waits for a call keeps the process: a web process
  joins its threads before it ends, chores those of alerts. A call still under way at the loop's end
  ends as an attempt of a stopping sender does.
- *A caller gives up* (Ctrl-C in a command): the call is cancelled, and the connection is ended.
- *Lateness.* A call ends by itself within the time limit. If the loop itself does not run, the
  caller stops waiting LATE_SECONDS later.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable, Container, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import uvloop

from delivery.senders.http.client import HttpClient
from subscriptions.values.addresses import Network
from subscriptions.values.resolver import Resolver
from subscriptions.values.resolver import resolver as this_resolver

log = logging.getLogger(__name__)

Result = TypeVar("Result")

LATE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class _Open:
    """A running event loop with a client; `end` makes it stop."""

    loop: asyncio.AbstractEventLoop
    client: HttpClient
    end: asyncio.Event


class ClientThread:
    """A client with an event loop thread, opened at the first use."""

    def __init__(
        self,
        *,
        allowed_networks: Sequence[Network],
        built_in_receivers: Container[str] = (),
        resolver: Resolver = this_resolver,
    ) -> None:
        self.allowed_networks = allowed_networks
        self._built_in_receivers = built_in_receivers
        self.resolver = resolver
        self._turn = threading.Lock()
        self._open: _Open | None = None
        self._thread: threading.Thread | None = None

    def wait_for(
        self, work: Callable[[HttpClient], Coroutine[Any, Any, Result]], *, seconds: float
    ) -> Result:
        """Return the result of work of at most so many seconds.

        Raises TimeoutError if it does not, and OSError if no event loop can be opened.
        """
        with self._turn:
            opened = self._opened()
            future = asyncio.run_coroutine_threadsafe(work(opened.client), opened.loop)
        try:
            return future.result(seconds + LATE_SECONDS)
        except BaseException:
            # Without effect if the work itself has raised this.
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel the work under way, close the connections, and wait for the thread's end."""
        with self._turn:
            opened, thread, self._open = self._open, self._thread, None
        if opened is not None and thread is not None and thread.is_alive():
            opened.loop.call_soon_threadsafe(opened.end.set)
            thread.join()

    def _opened(self) -> _Open:
        if self._open is None or self._open.loop.is_closed():
            opening: Future[_Open] = Future()
            self._thread = threading.Thread(
                target=self._serve, args=(opening,), name="calls", daemon=True
            )
            self._thread.start()
            self._open = opening.result()
        return self._open

    def _serve(self, opening: "Future[_Open]") -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve_until_closed(opening))
        except BaseException as error:
            if opening.done():
                log.exception("the event loop of calls has ended; the next call opens another")
            else:
                opening.set_exception(error)

    async def _serve_until_closed(self, opening: "Future[_Open]") -> None:
        client = HttpClient(
            allowed_networks=self.allowed_networks,
            built_in_receivers=self._built_in_receivers,
            resolver=self.resolver,
        )
        async with client:
            end = asyncio.Event()
            opening.set_result(_Open(asyncio.get_running_loop(), client, end))
            await end.wait()
            client.is_closing = True
            under_way = asyncio.all_tasks() - {asyncio.current_task()}
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)


class _ProcessThreads:
    """The client threads of this process, one for each guard: in practice a single thread."""

    def __init__(self) -> None:
        self._left_behind: list[object] = []
        self.restart()

    def restart(self) -> None:
        """Forget the parent's threads in a forked process.

        They are kept as they are: to collect an event loop would close the parent's files.
        """
        self._left_behind.append(getattr(self, "_threads", None))
        self._turn = threading.Lock()
        self._threads: dict[object, ClientThread] = {}

    def of(self, networks: tuple[Network, ...], receivers: Container[str]) -> ClientThread:
        with self._turn:
            guard = networks, receivers
            if guard not in self._threads:
                self._threads[guard] = ClientThread(
                    allowed_networks=networks, built_in_receivers=receivers
                )
            return self._threads[guard]

    def close(self) -> None:
        with self._turn:
            threads = list(self._threads.values())
        for thread in threads:
            thread.close()


_of_process = _ProcessThreads()
os.register_at_fork(after_in_child=_of_process.restart)
# Python's end stops daemon threads anywhere, also inside of libuv.
atexit.register(_of_process.close)


def client_thread(
    *, allowed_networks: Sequence[Network], built_in_receivers: Container[str] = ()
) -> ClientThread:
    """Return the thread of this process whose client has this guard."""
    return _of_process.of(tuple(allowed_networks), built_in_receivers)
