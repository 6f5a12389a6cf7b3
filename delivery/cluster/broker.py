"""The queue of a cluster, in the database: django-q2's, but read only when it may have tasks.

Only the cluster's own workers queue tasks: each when it starts. So the pusher, which reads the
queue, waits for a shared event, instead of asking the database twice a second.
"""

import logging
import time
from typing import Any

from django.db import Error, connection
from django_q.brokers.orm import ORM

from delivery.cluster.events import ForkedEvent, wait_for_any
from delivery.cluster.stop_event import stopping

log = logging.getLogger(__name__)

# Also looks this often without the event: for tasks taken by a pusher before it was killed.
LOOK_SECONDS = 30.0
# The pause while the database is away, and until a stopping cluster ends the pusher.
PAUSE_SECONDS = 0.1

# The cluster makes the broker, and so imports this module, before it forks workers and pusher.
queued = ForkedEvent()


class WorkersQueue(ORM):  # type: ignore[misc]
    def enqueue(self, task: Any) -> Any:
        key = super().enqueue(task)
        queued.set()
        return key

    def dequeue(self) -> Any:
        """Return the next task in a list; return None after a pause if there was none."""
        # Before the query: a task not found by it sets the event again.
        queued.clear()
        try:
            tasks = super().dequeue()
        except Error as error:
            log.warning("a cluster's queue cannot be read", extra={"error": str(error)})
            connection.close()
            time.sleep(PAUSE_SECONDS)
            return None
        if not tasks:
            connection.close()
            if stopping.is_set():
                time.sleep(PAUSE_SECONDS)
            else:
                wait_for_any([queued, stopping], seconds=LOOK_SECONDS)
        return tasks

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """Do not store the cluster's state, which django-q2 would twice a second."""
