"""The django-q2 clusters, and the arithmetic that keeps a stint shorter than its timeout.

A sender loop is a task that ends by itself: it works for `stint_seconds`, then
takes at most `DRAIN_SECONDS` to let slow endpoints finish. django-q2 would kill it at
`timeout` and hand the task out again at `retry`, so the one must come before
the other:

    stint_seconds + DRAIN_SECONDS < timeout < retry

Every cluster has a queue of its own, named after its machine and home, so that it
runs exactly as many stints as it has workers. The loop of chores is such a task too: one worker a machine does
what is to be done now and then (see `delivery.chores.loop`); and so is that of the history, whose one worker has the
pipeline's runs run (see `delivery.pipeline.loop`). There a stint does not end before the run that is under way, so its
timeout is for one that hangs.
"""

import ctypes
import os
import signal
import socket
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from delivery.stopping import stopping
from subscriptions.limits import MAX_TIMEOUT_SECONDS

# Waiting for the slowest endpoint, and settling after it.
DRAIN_SECONDS = MAX_TIMEOUT_SECONDS + 15

# Of the longest run of the pipeline; what is ended then is begun again, and an export goes on.
LONGEST_RUN_SECONDS = 24 * 3600

SENDERS, CHORES, HISTORY = "senders", "chores", "history"
# Where the keeper of each cluster's loop is.
_KEEPERS = {
    SENDERS: "delivery.senders.keep",
    CHORES: "delivery.chores.keep",
    HISTORY: "delivery.pipeline.keep",
}
CLUSTERS: tuple[str, ...] = tuple(_KEEPERS)


def queue_name(cluster: str, home: Path) -> str:
    """The name of this machine's queue for a cluster."""
    return f"{cluster}@{socket.gethostname()}-{zlib.crc32(str(home).encode()):08x}"


def q_cluster(*, home: Path, workers: int, stint_seconds: int) -> dict[str, Any]:
    """The settings of django-q2, as the senders' cluster has them; `run` says what is different in the others."""
    timeout = stint_seconds + DRAIN_SECONDS + 30
    return {
        "name": "inturn",
        "cluster_name": queue_name(SENDERS, home),
        "orm": "default",
        "workers": workers,
        "timeout": timeout,
        "retry": timeout + 60,
        "ack_failures": True,
        "max_attempts": 1,
        # Successful stints are no history worth a row.
        "save_limit": -1,
        # A waiting stint is picked up this many seconds after it was queued, at most.
        "poll": 0.25,
        "guard_cycle": 0.25,
        "scheduler": False,
        "recycle": 50,
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


def run(name: str, *, home: Path) -> None:
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
    Conf.CLUSTER_NAME = queue_name(name, home)
    if name != SENDERS:
        Conf.WORKERS = 1
    if name == HISTORY:
        Conf.TIMEOUT += LONGEST_RUN_SECONDS
        Conf.RETRY += LONGEST_RUN_SECONDS
    die_with_parent()
    import_module(_KEEPERS[name]).KEEPER.begin()
    # A connection must not be shared with what is forked now.
    connections.close_all()
    StoppableCluster().start()
