"""Several instances of the product on one database, each with a separate home, like machines."""

import os
import signal
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

from django.db import connection

from tests.bench import stage, usage
from tests.bench.children import ReceiverProcess
from tests.bench.measuring import START_SECONDS, wait_until
from tests.bench.started import Started, started_beside


class Instances:
    """The running instances, which end with the stack; `changed` are variables of all of them."""

    def __init__(self, stack: ExitStack, **changed: str) -> None:
        self._stack = stack
        self._changed = changed
        self._running: list[Started] = []

    def grow(self, count: int, *, senders: int) -> None:
        """Start instances until so many run, and wait until each has so many senders."""
        while len(self._running) < count:
            self._running.append(self._stack.enter_context(started_beside(**self._changed)))
        wait_until(count * senders, stage.senders, seconds=START_SECONDS)

    def processes(self) -> list[usage.Process]:
        """Return the processes of all instances, of the benchmark, and of the database server."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone() or (0,)
        return [*usage.tree(os.getpid()), *usage.database(pid)]

    def shares(self, receiver: ReceiverProcess) -> list[int]:
        """Return the number of requests of each instance.

        Only open connections count: senders keep idle connections for some seconds.
        """
        return [self._requests(instance, receiver) for instance in self._running]

    def kill_busiest(self, receiver: ReceiverProcess) -> None:
        """Kill, all at once, the processes of the busiest instance."""
        busiest = max(self._running, key=lambda instance: self._requests(instance, receiver))
        self._running.remove(busiest)
        for process in usage.tree(busiest.pid):
            # Some end with their parent.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def _requests(self, instance: Started, receiver: ReceiverProcess) -> int:
        clients = receiver.clients()
        port = urlsplit(receiver.url).port or 0
        ports = usage.local_ports(usage.tree(instance.pid), to=port)
        return sum(clients.get(known, 0) for known in ports)
