"""The django-q2 clusters. Each worker runs one task: a loop that ends when Inturn stops.

The loops of the senders' cluster send (see `delivery.senders.sender`). That of the cluster `chores` does what is to be done now
and then (see `delivery.chores.loop`), and that of the cluster `history` starts the pipeline's runs (see `delivery.pipeline.loop`).
Every cluster has a queue of its own, named anew each time it starts: its tasks are for its own workers, however many machines
have the same name.
"""

import ctypes
import os
import signal
import socket
import uuid
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from types import FrameType
from typing import Any

from delivery.stopping import stopping

SENDERS, CHORES, HISTORY = "senders", "chores", "history"
# Where the keeper of each cluster's loop is.
_KEEPERS = {
    SENDERS: "delivery.senders.keep",
    CHORES: "delivery.chores.keep",
    HISTORY: "delivery.pipeline.keep",
}
CLUSTERS: tuple[str, ...] = tuple(_KEEPERS)

# A task is begun within a second. What is older was left by a cluster that was killed.
_LEFT_AFTER = timedelta(hours=1)


def q_cluster(*, workers: int) -> dict[str, Any]:
    """The settings of django-q2, as the senders' cluster has them; `run` says what is different in the others."""
    return {
        "name": "inturn",
        "orm": "default",
        "workers": workers,
        # Our tasks have no time-out of their own, and their rows go as they begin; django-q2 wants both settings.
        "timeout": 60,
        "retry": 120,
        "ack_failures": True,
        "max_attempts": 1,
        # A task that ended is no history worth a row.
        "save_limit": -1,
        # A waiting task is picked up this many seconds after it was queued, at most.
        "poll": 0.25,
        "guard_cycle": 0.25,
        "scheduler": False,
        "log_level": "WARNING",
        "ALT_CLUSTERS": {},
    }


def die_with_parent() -> None:
    """Let every process forked from now on be killed when its parent is.

    Without it a cluster whose top process is killed leaves its guard and workers
    running, and nobody to stop them.
    """
    prctl: Callable[[int, int], int] | None = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        pr_set_pdeathsig = 1
        os.register_at_fork(after_in_child=lambda: prctl(pr_set_pdeathsig, int(signal.SIGKILL)))


def run(name: str) -> None:
    """Run a cluster of this machine until SIGTERM or SIGINT."""
    from django.db import connections
    from django_q.cluster import Cluster
    from django_q.conf import Conf

    class StoppableCluster(Cluster):  # type: ignore[misc]
        """A cluster that tells its busy workers to stop."""

        def sig_handler(self, signum: int, frame: FrameType | None) -> None:
            stopping.set()
            super().sig_handler(signum, frame)

    # django-q2 has read its settings long before a command knows which cluster it is to run.
    Conf.CLUSTER_NAME = f"{name}@{socket.gethostname()[:40]}-{uuid.uuid4().hex}"
    if name != SENDERS:
        Conf.WORKERS = 1
    _drop_left(name)
    die_with_parent()
    import_module(_KEEPERS[name]).KEEPER.begin()
    # A connection must not be shared with what is forked now.
    connections.close_all()
    StoppableCluster().start()


def _drop_left(name: str) -> None:
    from django.utils import timezone
    from django_q.models import OrmQ

    OrmQ.objects.filter(key__startswith=f"{name}@", lock__lt=timezone.now() - _LEFT_AFTER).delete()
