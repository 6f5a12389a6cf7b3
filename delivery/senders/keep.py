"""Keeping the stints going: every worker of the senders' cluster has one to run.

A worker that starts, also in place of one that was killed, queues a stint, and a
stint that ends queues its successor. One too many finds no free slot and returns, so
queueing is never wrong, and not queueing is the only mistake.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.dispatch import receiver
from django_q.models import OrmQ
from django_q.signals import post_spawn
from django_q.tasks import async_task

# Imported here, before the workers are forked: a worker that replaces a killed one must not
# spend its first second on importing.
from delivery.senders import stint
from delivery.senders.stopping import stopping

log = logging.getLogger(__name__)

STINT = "delivery.senders.keep.run_stint"
RETRY_SECONDS = 0.5


@receiver(post_spawn)
def start(**_: Any) -> None:
    """Queue a stint for the worker that has just started."""
    _insist(queue_stint)


def queue_stint() -> None:
    async_task(STINT, cluster=settings.Q_CLUSTER["cluster_name"], save=False)


def forget_stints() -> None:
    """Drop what an earlier cluster of this machine left in the queue."""
    OrmQ.objects.filter(key=settings.Q_CLUSTER["cluster_name"]).delete()


def run_stint() -> None:
    """The task: one stint, and then its successor."""
    try:
        was_needed = stint.run()
    except BaseException:
        # Also when django-q2 ends it: the worker is replaced then, which queues a stint.
        log.exception("stint failed")
        was_needed = True
    if was_needed and not stopping.is_set():
        _insist(queue_stint)


def _insist(action: Callable[[], None]) -> None:
    """Do it as soon as the database is there, unless we are to stop."""
    while not stopping.is_set():
        try:
            action()
        except Error as error:
            log.warning("cannot queue a stint", extra={"error": str(error)})
            connection.close()
            time.sleep(RETRY_SECONDS)
        else:
            return
