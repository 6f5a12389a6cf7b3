"""The launcher: it loads the product once, forks web server and cluster, and ends.

The two share the memory of what both load, and start sooner than two processes that load it. A part
restarted later is a separate command: see `config.up.child`.

The supervisor adopts both: a process whose parent has ended becomes a child of the nearest
subreaper among the ancestors. Linux only.
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
class LaunchRequest:
    """The commands to start, by part, and the run and supervisor they belong to."""

    parts: dict[str, list[str]]
    run: str
    logs: str | None
    supervisor: int


def launch(request: LaunchRequest) -> None:
    """Load the product, start the parts, and write their process numbers.

    Standard output is a pipe, which gets a JSON object.
    """
    threshold = gc.get_threshold()
    _load()
    if threading.active_count() > 1:
        raise RuntimeError("a thread was started, which forked processes would not have")
    gc.collect()
    gc.freeze()
    started = {}
    for name in request.parts:
        part = get_context("fork").Process(
            target=_become,
            args=(name, request),
            kwargs={"launcher": os.getpid(), "gc_threshold": threshold},
        )
        part.start()
        started[name] = part.pid
    os.write(1, json.dumps(started).encode())
    # The parts must outlive this process, and multiprocessing would wait for them.
    os._exit(0)


def _load() -> None:
    """Import what web server and cluster import; nothing starts a thread or connects."""
    import django

    django.setup()
    for name in ("config.web.rsgi", "config.urls", "granian.cli", "granian.server"):
        import_module(name)
    for name in ("django_q.cluster", "config.management.commands.qcluster"):
        import_module(name)
    from config.up import clusters

    clusters.import_loops()


def _become(
    name: str, request: LaunchRequest, *, launcher: int, gc_threshold: tuple[int, int, int]
) -> None:
    """Run the part in this new process, as if the supervisor had started its command."""
    os.setsid()
    marker = f"{processes.MARKER}={request.run}"
    titles.replace_in_environment(f"{marker}{NAME}", f"{marker}{name}")
    os.environ[processes.MARKER] = f"{request.run}{name}"
    titles.set_command_line(request.parts[name])
    logs = Path(request.logs) if request.logs else None
    with open_log(logs, name) as log, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    while os.getppid() == launcher:  # It ends soon.
        time.sleep(_WAIT_SECONDS)
    end_with_parent(signal.SIGTERM, parent=request.supervisor)()
    if name == CLUSTER:  # The web application has set other thresholds.
        gc.set_threshold(*gc_threshold)
    _BECOME[name](request.parts[name])


def _serve(command: list[str]) -> None:
    from config.web.granian import run_granian

    # Without the interpreter and the option `-m`.
    sys.argv = command[2:]
    run_granian()


def _run_cluster(command: list[str]) -> None:
    from config.django_commands import run_command

    sys.argv = command[1:]
    run_command(sys.argv)


_BECOME: dict[str, Callable[[list[str]], None]] = {WEB: _serve, CLUSTER: _run_cluster}

if __name__ == "__main__":
    launch(LaunchRequest(**json.loads(sys.argv[1])))
