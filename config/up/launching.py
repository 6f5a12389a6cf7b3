"""Starting web server and cluster by a launcher: see `config.up.launcher`."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

from config.env import CHECKOUT
from config.up import launcher, processes
from config.up.child import ChildProcess, print_line
from config.up.logfiles import open_log
from delivery.cluster.orphans import end_with_parent

_PR_SET_CHILD_SUBREAPER = 36
_LOAD_SECONDS = 60.0


def launch_parts(parts: Sequence[ChildProcess]) -> set[str]:
    """Have a launcher start the parts, adopt them, and return their names.

    Call it from the main thread (see `end_with_parent`), and after `prepare`: what is loaded
    depends on what was prepared, such as the collected static files. The parts have the same
    environment. Where this is not possible, and after a failure, none of the parts runs.
    """
    if sys.platform != "linux" or not _adopt_orphans(True):
        return set()
    process = _launcher(parts)
    try:
        output, _ = process.communicate(timeout=_LOAD_SECONDS)
        started: dict[str, int] = json.loads(output)
    except (ValueError, subprocess.TimeoutExpired):
        print_line("web server and cluster could not share their start: each starts alone")
        _end(process, parts)
        return set()
    finally:
        _adopt_orphans(False)
    for part in parts:
        part.adopt(started[part.name])
    return set(started)


def _launcher(parts: Sequence[ChildProcess]) -> subprocess.Popen[bytes]:
    part = parts[0]
    request = launcher.LaunchRequest(
        parts={part.name: part.command for part in parts},
        run=part.run,
        logs=str(part.logs) if part.logs else None,
        supervisor=os.getpid(),
    )
    with open_log(part.logs, part.name) as log:
        return subprocess.Popen(
            [sys.executable, "-m", "config.up.launcher", json.dumps(asdict(request))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=CHECKOUT,
            env=part.environment | {processes.MARKER: f"{part.run}{launcher.NAME}"},
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGTERM),
        )


def _end(process: subprocess.Popen[bytes], parts: Sequence[ChildProcess]) -> None:
    """End the launcher, and the parts started so far."""
    markers = [f"{parts[0].run}{launcher.NAME}", *(part.marker for part in parts)]
    processes.end_processes(
        lambda: set().union(*map(processes.marked_processes, markers)), [(signal.SIGKILL, 5)]
    )
    process.communicate()


def _adopt_orphans(on: bool) -> bool:
    """Become the parent of descendants whose parents end, or no longer; return whether we can."""
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) == 0)
