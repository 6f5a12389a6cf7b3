"""Two transactions at once: the first is held open, the other meets it in another thread."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.db import connection, connections, transaction

from tests.system.operation.installation import eventually


def meet(first: Callable[[], object], second: Callable[[], object]) -> BaseException | None:
    """Run both, the second before the first commits, and return the second's exception.

    The second has to wait for the first.
    """
    with ThreadPoolExecutor(1) as thread:
        with unfinished(first) as pid:
            meeting = thread.submit(_alone, second)
            wait_until_somebody_waits_for(pid)
        return meeting.exception(30)


@contextmanager
def unfinished(act: Callable[[], object]) -> Iterator[int]:
    """Run it in another connection, which commits at the block's end; yield the process id."""
    done, may_end, backends = threading.Event(), threading.Event(), list[int]()

    def acting() -> None:
        with transaction.atomic():
            act()
            backends.append(backend())
            done.set()
            assert may_end.wait(30)

    with ThreadPoolExecutor(1) as thread:
        ending = thread.submit(_alone, acting)
        ending.add_done_callback(lambda _: done.set())
        assert done.wait(30)
        try:
            yield backends[0]
        finally:
            may_end.set()
            ending.result(30)


def _alone(act: Callable[[], object]) -> None:
    try:
        act()
    finally:
        connections.close_all()


def wait_until_somebody_waits_for(backend: int) -> None:
    def is_waited_for() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
                [backend],
            )
            row = cursor.fetchone()
        return row is not None and bool(row[0])

    eventually(is_waited_for, "somebody waits for the lock")


def backend() -> int:
    """Return the server process id of this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        row = cursor.fetchone()
    assert row is not None
    pid: int = row[0]
    return pid
