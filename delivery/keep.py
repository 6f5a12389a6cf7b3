"""Keeping a cluster's loop going: every worker has a stint of it to run, and only one.

A worker that starts, also in place of one that was killed, queues a stint, and a stint that ends queues its
successor, unless its worker is about to be replaced by one that queues its own. The row of a stint
goes as the stint begins: that of a killed worker would come back after django-q2's `retry`, as one too many.
Waiting stints that no worker is free for would fill django-q2's queue in time, and a cluster whose queue is
full does not stop.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.db import Error, connection
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signals import post_spawn, pre_execute
from django_q.tasks import async_task

from delivery.stopping import stopping

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5


class Keeper:
    """Keeps one loop going: `task` is the dotted name of a function that calls `work` and nothing else.

    The loop ends by itself, and returns False if it was one too many.
    """

    def __init__(self, task: str, loop: Callable[[], bool]) -> None:
        self._task = task
        self._loop = loop
        self._begun = 0

    def begin(self) -> None:
        """Let all workers that are forked from now on run it, and drop what an earlier cluster of this machine left."""
        OrmQ.objects.filter(key=Conf.CLUSTER_NAME).delete()
        post_spawn.connect(self._start_worker)
        pre_execute.connect(_drop_row)

    def work(self) -> None:
        """Be the task: one stint, and then its successor."""
        self._begun += 1
        try:
            was_needed = self._loop()
        except BaseException:
            # Also when django-q2 ends it.
            log.exception("stint failed")
            was_needed = True
        is_last = self._begun == Conf.RECYCLE
        if was_needed and not is_last:
            self._insist()

    def _start_worker(self, **_: Any) -> None:
        self._insist()

    def _insist(self) -> None:
        """Queue a stint as soon as the database is there, unless we are to stop."""
        while not stopping.is_set():
            try:
                async_task(self._task, save=False)
            except Error as error:
                log.warning("cannot queue a stint", extra={"error": str(error)})
                connection.close()
                time.sleep(RETRY_SECONDS)
            else:
                return


def _drop_row(*, task: Mapping[str, Any], **_: Any) -> None:
    try:
        OrmQ.objects.filter(pk=task["ack_id"]).delete()
    except Error:
        # The database has just gone; django-q2 drops it when the stint is over.
        connection.close()
