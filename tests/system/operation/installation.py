"""An `up` of the tests: real processes, found by a mark in their environment."""

import http.client
import os
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from config.env import CHECKOUT
from config.up import processes

DEADLINE_SECONDS = 60
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 0.1
MARK = "INTURN_TEST_MARK"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class StartedInstallation:
    """A home with a port, on which `up` can be started repeatedly."""

    # Arguments of `up` on its command line.
    arguments: tuple[str, ...] = ()
    # The interpreter and checkout that run the commands of Inturn.
    program: tuple[str, ...] = (sys.executable, str(CHECKOUT / "manage.py"))

    def __init__(self, home: Path, *, prefix: Sequence[str] = ()) -> None:
        self.home = home
        self.port = free_port()
        self.mark = uuid.uuid4().hex
        self._prefix = prefix
        self.up: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start `up` and wait for its line on standard output."""
        self.up = self.launch()
        assert self.first_line() == f"ready http://127.0.0.1:{self.port}\n"
        assert self.is_ready()

    def is_running(self) -> bool:
        return self.up is not None and self.up.poll() is None

    def launch(self, **changed: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        environment |= {"INTURN_HOME": str(self.home), "PORT": str(self.port), MARK: self.mark}
        return subprocess.Popen(
            [*self._prefix, *self.program, "up", *self.arguments],
            env=environment | changed,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def first_line(self) -> str:
        assert self.up is not None
        assert self.up.stdout is not None
        readable, _, _ = select.select([self.up.stdout], [], [], DEADLINE_SECONDS)
        line = self.up.stdout.readline() if readable else ""
        if not line:
            self.up.kill()
            raise AssertionError(f"not ready: {self.up.communicate()[1]}")
        return line

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Ask `up` to stop; return its exit code and the rest of its standard output."""
        assert self.up is not None
        self.up.send_signal(number)
        said, _ = self.up.communicate(timeout=DEADLINE_SECONDS)
        return self.up.returncode, said

    def is_ready(self) -> bool:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=DEADLINE_SECONDS / 2
        )
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def processes(self) -> set[int]:
        """Return all processes that these tests started for this home, including `up` itself."""
        return processes.processes_with(f"{MARK}={self.mark}") | self.postgres()

    def whole(self, part: str) -> set[int]:
        """Return the processes of one of the parts that `up` runs."""
        return {pid for pid in self.processes() if _part(pid) == part}

    def top(self, part: str) -> int | None:
        """Return the process that leads a part, None if there is none."""
        return _leader(self.whole(part))

    def postgres(self) -> set[int]:
        return {
            pid
            for data in self.home.glob("postgresql-*/data")
            for pid in processes.working_in(data)
        }

    def postmaster(self) -> int | None:
        """Return the parent of all PostgreSQL processes; each of those leads a session, too."""
        for reported in self.home.glob("postgresql-*/data/postmaster.pid"):
            lines = _read_lines(reported)
            if lines and (pid := int(lines[0])) in self.postgres():
                return pid
        return None

    def wait_for_postgres_after(self, killed: int | None) -> None:
        """Wait until the web server has connected to the successor of that postmaster.

        Some processes of the killed server outlive it for a moment, and answer.
        """
        eventually(lambda: self.postmaster() not in (None, killed), "another server")
        eventually(self.is_ready, "the web server has found it")

    def guardian(self) -> int | None:
        return _leader(
            {pid for pid in self.processes() if b"config.up.guardian" in _arguments(pid)}
        )

    def kill_up(self) -> None:
        """Kill the supervisor alone."""
        assert self.up is not None
        self.up.kill()
        self.up.communicate()

    def kill_all(self) -> None:
        while found := self.processes():
            kill(*found)
        if self.up is not None:
            self.up.communicate()


def kill(*pids: int | None) -> None:
    """Kill processes; several are stopped first, so that none replaces another meanwhile."""
    found = [pid for pid in pids if pid is not None]
    assert len(found) == len(pids), "a process to kill was not found"
    if len(found) > 1:
        stop(*found)
    processes.send_signal(signal.SIGKILL, found)


def stop(*pids: int) -> None:
    """Stop processes by SIGSTOP; return when no thread of theirs runs any more.

    One thread takes the signal: until it is scheduled, the others continue.
    """
    processes.send_signal(signal.SIGSTOP, pids)
    for pid in pids:
        eventually(partial(_is_stopped, pid), f"process {pid} is stopped")


def _is_stopped(pid: int) -> bool:
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(_state(thread) in ("T", "Z") for thread in threads)


def _state(thread: Path) -> str:
    try:
        return thread.read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def eventually(
    condition: Callable[[], object], claim: str, *, seconds: float = DEADLINE_SECONDS
) -> None:
    """Wait until the condition holds; the claim appears in the error.

    Most conditions are requests to a product or read /proc, which takes processor time from what
    the test waits for. So the pauses grow, and make a wait no more than a tenth longer.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, f"never: {claim}"
        time.sleep(min(max(SHORTEST_PAUSE_SECONDS, waited / 10), LONGEST_PAUSE_SECONDS))


def _part(pid: int) -> str:
    marker = f"{processes.MARKER}=".encode()
    values = [entry for entry in _read(pid, "environ").split(b"\0") if entry.startswith(marker)]
    return values[0].decode().rpartition("#")[2] if values else ""


def _leader(pids: set[int]) -> int | None:
    """Return the top process: each part has a session of its own, which that process leads."""
    for pid in pids:
        try:
            if os.getsid(pid) == pid:
                return pid
        except ProcessLookupError:
            continue
    return None


def _read_lines(path: Path) -> list[str]:
    """Return the file's lines; none if it has been removed meanwhile."""
    try:
        return path.read_text().split()
    except FileNotFoundError:
        return []


def _arguments(pid: int) -> list[bytes]:
    return _read(pid, "cmdline").split(b"\0")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
