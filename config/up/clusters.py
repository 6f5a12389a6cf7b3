"""The django-q2 cluster of a machine: each worker runs one task, a loop, until Inturn stops.

There are three loops: `senders` send (see `delivery.senders.sender`), `chores` runs periodic duties
(see `delivery.maintenance.loop`), and `history` starts pipeline runs (see
`delivery.pipeline.loop`). A cluster runs all of them, or those of a name. Chores and history wait
most of the time, so they share a worker.

`ps` and `top` show each worker by the name of its loop (`titles`), as the database shows its
sessions.

The cluster's queue gets a new name at each start, because the tasks are for this cluster's workers
only, even if several machines have the same name.
"""

import ctypes
import gc
import os
import signal
import socket
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any

from config.up import titles
from delivery.cluster.stop_event import stopping

SENDERS, CHORES, HISTORY = "senders", "chores", "history"
# Module and function of each loop.
_LOOPS = {
    SENDERS: ("delivery.senders.sender", "run_sender"),
    CHORES: ("delivery.maintenance.loop", "run_chores"),
    HISTORY: ("delivery.pipeline.loop", "run_pipeline"),
}
NAMES: tuple[str, ...] = tuple(_LOOPS)
# The name of the cluster's database sessions.
_TITLES = {HISTORY: "pipeline"}

Loop = Callable[[], None]

# A task starts within a second; an older parent is left over from a killed cluster.
_LEFT_AFTER = timedelta(hours=1)


def q_cluster(*, workers: int) -> dict[str, Any]:
    """Return the settings of django-q2; `run_loops` sets the number of workers."""
    return {
        "name": "inturn",
        "orm": "default",
        "broker_class": "delivery.cluster.broker.WorkersQueue",
        "workers": workers,
        # Our tasks have no time-out, and their rows are deleted as they start; django-q2 requires
        # both.
        "timeout": 60,
        "retry": 120,
        "ack_failures": True,
        "max_attempts": 1,
        # A finished task is not worth a row.
        "save_limit": -1,
        # The broker itself waits for tasks.
        "poll": 0,
        # The longest delay in seconds before a dead worker is replaced.
        "guard_cycle": 0.5,
        "scheduler": False,
        "log_level": "WARNING",
        "ALT_CLUSTERS": {},
    }


def die_with_parent() -> None:
    """Make the kernel kill every process forked from now on when the parent dies.

    Without this, killing a cluster's top process would leave its guard and workers running, with
    nothing to stop them.
    """
    prctl: Callable[[int, int], int] | None = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        pr_set_pdeathsig = 1
        os.register_at_fork(after_in_child=lambda: prctl(pr_set_pdeathsig, int(signal.SIGKILL)))


def run_loops(name: str | None, *, senders: int) -> None:
    """Run the loops with the name, or all, until SIGTERM or SIGINT."""
    from django.db import connections
    from django_q.cluster import Cluster
    from django_q.conf import Conf

    from delivery.cluster.keeper import Keeper

    class StoppableCluster(Cluster):  # type: ignore[misc]
        """A cluster whose busy workers are notified of a stop."""

        def sig_handler(self, signum: int, frame: FrameType | None) -> None:
            stopping.set()
            super().sig_handler(signum, frame)

    loops = _loops(name, senders=senders)
    # Set here, because django-q2 reads its settings before the command chooses a cluster.
    Conf.CLUSTER_NAME = f"inturn@{socket.gethostname()[:40]}-{uuid.uuid4().hex}"
    Conf.WORKERS = len(loops)
    _drop_left()
    die_with_parent()
    titles.name_process("cluster")
    Keeper(loops).begin()
    # Forked processes must not share a connection, but should share loaded objects; without the
    # freeze the garbage collector would write to every page of them.
    connections.close_all()
    gc.collect()
    gc.freeze()
    StoppableCluster().start()


def import_loops() -> None:
    """Import what the loops need, so that processes forked afterwards share it."""
    for module, _function in _LOOPS.values():
        import_module(module)
    import_module("delivery.cluster.keeper")


def _loops(name: str | None, *, senders: int) -> list[Loop]:
    """Return the loop of each worker."""
    from delivery.cluster.keeper import side_by_side

    if name is not None and name != SENDERS:
        return [_shown(_TITLES.get(name, name), _loop(name))]
    sending = [_shown(f"sender {number + 1}", _loop(SENDERS, number)) for number in range(senders)]
    if name == SENDERS:
        return sending
    chores = _shown(CHORES, _loop(CHORES), by=titles.name_thread)
    return [*sending, _shown("pipeline, chores", side_by_side(_loop(HISTORY), chores))]


def _loop(name: str, *arguments: int) -> Loop:
    module, function = _LOOPS[name]
    return partial(getattr(import_module(module), function), *arguments)


def _shown(name: str, loop: Loop, *, by: Callable[[str], None] = titles.name_process) -> Loop:
    """Return the loop, which first names the process or thread."""

    def run() -> None:
        by(name)
        loop()

    return run


def _drop_left() -> None:
    from django.utils import timezone
    from django_q.models import OrmQ

    OrmQ.objects.filter(key__startswith="inturn@", lock__lt=timezone.now() - _LEFT_AFTER).delete()
