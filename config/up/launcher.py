"""The launcher: a process that loads the product once, forks web server and cluster, and ends.

The two share the memory of what both load, and start sooner than two processes that load it. A part
that is started again later is a command of its own: see `config.up.child`.

The supervisor adopts both: a process whose parent has ended becomes a child of its nearest ancestor
that is a subreaper. Linux only.
"""

import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from config.up import processes, titles
from config.up.logfiles import open_log
from delivery.cluster.orphans import end_with_parent

# Longer than the names of the parts, which replace it in place.
NAME = "launcher"
WEB, CLUSTER = "web", "cluster"
_WAIT_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Order:
    """What to start: the command of each part, for this run of that supervisor."""

    parts: dict[str, list[str]]
    run: str
    logs: str | None
    supervisor: int


def launch(order: Order) -> None:
    """Load the product, start the parts, and write their process numbers.

    Standard output is a pipe, which gets one JSON object.
    """
    threshold = gc.get_threshold()
    _load()
    if threading.active_count() > 1:
        raise RuntimeError("a thread was started, which forked processes would not have")
    gc.collect()
    gc.freeze()
    started = {}
    for name in order.parts:
        part = get_context("fork").Process(
            target=_become,
            args=(name, order),
            kwargs={"launcher": os.getpid(), "gc_threshold": threshold},
        )
        part.start()
        started[name] = part.pid
    os.write(1, json.dumps(started).encode())
    # The parts must outlive this process, and multiprocessing would wait for them.
    os._exit(0)


def _load() -> None:
    """Import what web server and cluster import; nothing that starts a thread or connects."""
    import django

    django.setup()
    for name in ("config.web.rsgi", "config.urls", "granian.cli", "granian.server"):
        import_module(name)
    for name in ("django_q.cluster", "config.management.commands.qcluster"):
        import_module(name)
    from config.up import clusters

    clusters.import_loops()


def _become(name: str, order: Order, *, launcher: int, gc_threshold: tuple[int, int, int]) -> None:
    """Run the part in this new process, as if the supervisor had started its command."""
    os.setsid()
    marker = f"{processes.MARKER}={order.run}"
    titles.replace_in_environment(f"{marker}{NAME}", f"{marker}{name}")
    os.environ[processes.MARKER] = f"{order.run}{name}"
    titles.set_command_line(order.parts[name])
    logs = Path(order.logs) if order.logs else None
    with open_log(logs, name) as log, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    while os.getppid() == launcher:  # It ends soon.
        time.sleep(_WAIT_SECONDS)
    end_with_parent(signal.SIGTERM, parent=order.supervisor)()
    if name == CLUSTER:  # The web application has set its own.
        gc.set_threshold(*gc_threshold)
    _BECOME[name](order.parts[name])


def _serve(command: list[str]) -> None:
    from config.web.granian import run_granian

    # Without the interpreter and its option `-m`.
    sys.argv = command[2:]
    run_granian()


def _run_cluster(command: list[str]) -> None:
    from config.django_commands import run_command

    sys.argv = command[1:]
    run_command(sys.argv)


_BECOME: dict[str, Callable[[list[str]], None]] = {WEB: _serve, CLUSTER: _run_cluster}

if __name__ == "__main__":
    launch(Order(**json.loads(sys.argv[1])))
