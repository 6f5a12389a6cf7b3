"""The django-q2 cluster of a machine. Each worker runs one task: a loop that ends when Inturn stops.

The loops `senders` send (see `delivery.senders.sender`), `chores` does what is to be done now and then (see
`delivery.chores.loop`), and `history` starts the pipeline's runs (see `delivery.pipeline.loop`). A cluster runs all of them,
or those of one name. Chores and history wait most of the time, and share a worker. Its queue is named anew each time it starts: its tasks are for its own workers, however many machines have
the same name.
"""

import ctypes
import gc
import os
import signal
import socket
import uuid
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from types import FrameType
from typing import Any

from delivery.cluster.stopping import stopping

SENDERS, CHORES, HISTORY = "senders", "chores", "history"
# The module whose `run` is the loop.
_LOOPS = {
    SENDERS: "delivery.senders.sender",
    CHORES: "delivery.chores.loop",
    HISTORY: "delivery.pipeline.loop",
}
NAMES: tuple[str, ...] = tuple(_LOOPS)

Loop = Callable[[], None]

# A task is begun within a second. What is older was left by a cluster that was killed.
_LEFT_AFTER = timedelta(hours=1)


def q_cluster(*, workers: int) -> dict[str, Any]:
    """The settings of django-q2; `run` says how many workers a cluster has."""
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
        "poll": 0.5,
        # A worker that died is replaced this many seconds later, at most.
        "guard_cycle": 0.5,
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


def run(name: str | None, *, senders: int) -> None:
    """Run the loops of that name, or all, until SIGTERM or SIGINT."""
    from django.db import connections
    from django_q.cluster import Cluster
    from django_q.conf import Conf

    from delivery.cluster.keeper import Keeper

    class StoppableCluster(Cluster):  # type: ignore[misc]
        """A cluster that tells its busy workers to stop."""

        def sig_handler(self, signum: int, frame: FrameType | None) -> None:
            stopping.set()
            super().sig_handler(signum, frame)

    loops = _loops(name, senders=senders)
    # django-q2 has read its settings long before a command knows which cluster it is to run.
    Conf.CLUSTER_NAME = f"inturn@{socket.gethostname()[:40]}-{uuid.uuid4().hex}"
    Conf.WORKERS = len(loops)
    _drop_left()
    die_with_parent()
    Keeper(loops).begin()
    # A connection must not be shared with the processes that are forked now, and what is loaded should be: the collector
    # would write to every page of it.
    connections.close_all()
    gc.collect()
    gc.freeze()
    StoppableCluster().start()


def _loops(name: str | None, *, senders: int) -> list[Loop]:
    """Return what each worker runs."""
    from delivery.cluster.keeper import side_by_side

    def loop(name: str) -> Loop:
        run: Loop = import_module(_LOOPS[name]).run
        return run

    if name == SENDERS:
        return [loop(SENDERS)] * senders
    if name is not None:
        return [loop(name)]
    return [*[loop(SENDERS)] * senders, side_by_side(loop(HISTORY), loop(CHORES))]


def _drop_left() -> None:
    from django.utils import timezone
    from django_q.models import OrmQ

    OrmQ.objects.filter(key__startswith="inturn@", lock__lt=timezone.now() - _LEFT_AFTER).delete()
