"""Keeping a cluster's loop going: every worker runs it, from its start until Inturn stops.

A worker that starts, also in place of one that was killed, queues a task, and runs the loop in it. The task has no
time-out, and its row goes as it begins: that of a killed worker would come back after django-q2's `retry`, as one too many.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.db import Error, connection
from django_q.models import OrmQ
from django_q.signals import post_spawn, pre_execute
from django_q.tasks import async_task

from delivery.stopping import stopping

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
# django-q2's word for none.
NO_TIMEOUT = -1


class Keeper:
    """Keeps one loop going: `task` is the dotted name of a function that calls `work` and nothing else."""

    def __init__(self, task: str, loop: Callable[[], None]) -> None:
        self._task = task
        self._loop = loop

    def begin(self) -> None:
        """Let all workers that are forked from now on run the loop."""
        post_spawn.connect(self._start_worker)
        pre_execute.connect(_drop_row)

    def work(self) -> None:
        """Be the task: run the loop, again if it fails."""
        while not stopping.is_set():
            try:
                self._loop()
            except Exception:
                log.exception("a cluster's loop failed")
                connection.close()
                time.sleep(RETRY_SECONDS)

    def _start_worker(self, **_: Any) -> None:
        _insist(lambda: async_task(self._task, save=False, timeout=NO_TIMEOUT))


def _drop_row(*, task: Mapping[str, Any], **_: Any) -> None:
    _insist(lambda: OrmQ.objects.filter(pk=task["ack_id"]).delete())


def _insist(act: Callable[[], object]) -> None:
    """Do it as soon as the database is there, unless Inturn stops."""
    while not stopping.is_set():
        try:
            act()
        except Error as error:
            log.warning("a cluster's queue cannot be written", extra={"error": str(error)})
            connection.close()
            time.sleep(RETRY_SECONDS)
        else:
            return
