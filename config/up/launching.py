"""Starting web server and cluster by a launcher: see `config.up.launcher`."""

import ctypes
import json
import os
import signal
import socket
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


class Launching:
    """A launcher, which loads the product in a process of its own."""

    def __init__(self, parts: Sequence[ChildProcess]) -> None:
        """Start it; call this from the main thread, see `end_with_parent`.

        The parts have the same environment.
        """
        self._parts = parts
        self._process: subprocess.Popen[bytes] | None = None
        if sys.platform == "linux":
            self._socket, its_socket = socket.socketpair()
            with its_socket:
                self._process = self._start(parts[0], its_socket)

    def finish(self) -> set[str]:
        """Let the launcher start the parts, adopt them, and return their names.

        Without a launcher, or after a failure, none of the parts runs.
        """
        if self._process is None or not _adopt_orphans(True):
            return set()
        try:
            with self._socket:
                self._socket.settimeout(_LOAD_SECONDS)
                self._socket.sendall(b"\n")
                with self._socket.makefile("rb") as answer:
                    started: dict[str, int] = json.load(answer)
            self._process.wait(_LOAD_SECONDS)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            print_line("web server and cluster could not share their start: each starts alone")
            self._end()
            return set()
        finally:
            _adopt_orphans(False)
        for part in self._parts:
            part.adopt(started[part.name])
        return set(started)

    def _start(self, part: ChildProcess, its_socket: socket.socket) -> subprocess.Popen[bytes]:
        order = launcher.Order(
            parts={part.name: part.command for part in self._parts},
            run=part.run,
            logs=str(part.logs) if part.logs else None,
            supervisor=os.getpid(),
        )
        with open_log(part.logs, part.name) as log:
            return subprocess.Popen(
                [sys.executable, "-m", "config.up.launcher", json.dumps(asdict(order))],
                stdin=its_socket.fileno(),
                stdout=log,
                stderr=log,
                cwd=CHECKOUT,
                env=part.environment | {processes.MARKER: f"{part.run}{launcher.NAME}"},
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGTERM),
            )

    def _end(self) -> None:
        assert self._process is not None
        run = self._parts[0].run
        markers = [f"{run}{launcher.NAME}", *(part.marker for part in self._parts)]
        processes.end_processes(
            lambda: set().union(*map(processes.marked_processes, markers)), [(signal.SIGKILL, 5)]
        )
        self._process.wait()


def _adopt_orphans(on: bool) -> bool:
    """Become the parent of descendants whose parents end, or no longer; return whether we can."""
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) == 0)
