"""Keeping a cluster's loops running: a worker runs each until Inturn stops.

A starting worker, also a killed worker's successor, queues a task. The worker of the task runs the
first loop without a worker: it holds a lock on the loop's byte of a file, which the kernel releases
when the worker ends. The task has no time-out, and the row is deleted when it begins: the row of a
killed worker would be executed again after django-q2's `retry`.
"""

import fcntl
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import Error, connection
from django_q.models import OrmQ
from django_q.signals import post_spawn, pre_execute
from django_q.tasks import async_task

from delivery.cluster.stop_event import stopping

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
# django-q2's value for none.
NO_TIMEOUT = -1


Loop = Callable[[], None]


def run_until_stopped(loop: Loop) -> None:
    """Run a loop until Inturn stops; run it again if it fails."""
    while not stopping.is_set():
        try:
            loop()
        except Exception:
            log.exception("a cluster's loop failed")
            connection.close()
            time.sleep(RETRY_SECONDS)


def side_by_side(first: Loop, *others: Loop) -> Loop:
    """Return a loop that runs all of these in a process.

    The first runs in the main thread, the only thread that may start processes. A failed loop is
    run again, and the others continue meanwhile.
    """

    def run() -> None:
        threads = [
            threading.Thread(
                target=run_until_stopped, args=(loop,), name=f"loop {number}", daemon=True
            )
            for number, loop in enumerate(others, start=1)
        ]
        for thread in threads:
            thread.start()
        run_until_stopped(first)
        for thread in threads:
            thread.join()

    return run


class Keeper:
    """The loops of a cluster, as many as it has workers."""

    def __init__(self, loops: Sequence[Loop]) -> None:
        self._loops = loops
        with tempfile.TemporaryFile() as file:
            # Open as long as the process lives.
            self._runners = os.dup(file.fileno())

    def begin(self) -> None:
        """Make workers forked from now on run the loops."""
        _keepers.append(self)
        post_spawn.connect(_start_worker)
        pre_execute.connect(_drop_row)

    def work(self) -> None:
        """Run a loop without a worker; run it again if it fails."""
        run_until_stopped(lambda: run_until_stopped(self._claim_loop()))

    def _claim_loop(self) -> Loop:
        for place, loop in enumerate(self._loops):
            try:
                fcntl.lockf(self._runners, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except OSError:
                continue
            return loop
        raise RuntimeError("more workers than loops")


# The keeper of this process: at most one. django-q2 calls functions by their names.
_keepers: list[Keeper] = []


def work() -> None:
    """Run a worker's task."""
    _keepers[-1].work()


def _start_worker(**_: Any) -> None:
    _retry(lambda: async_task("delivery.cluster.keeper.work", save=False, timeout=NO_TIMEOUT))


def _drop_row(*, task: Mapping[str, Any], **_: Any) -> None:
    _retry(lambda: OrmQ.objects.filter(pk=task["ack_id"]).delete())


def _retry(act: Callable[[], object]) -> None:
    """Act as soon as the database is available, unless Inturn stops."""
    while not stopping.is_set():
        try:
            act()
        except Error as error:
            log.warning("a cluster's queue cannot be written", extra={"error": str(error)})
            connection.close()
            time.sleep(RETRY_SECONDS)
        else:
            # The loops have connections of their own.
            connection.close()
            return
