"""The parts kept running by `up`: how each is started, checked and stopped."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from config.embedded.postgres import Server
from config.embedded.programs import PostgresError
from config.env import ASSETS, CHECKOUT, Environment
from config.up import processes
from config.up.logfiles import open_log
from config.web.connections import max_connections
from delivery.cluster.orphans import end_with_parent
from subscriptions.values.schedules import doubling_pause

MANAGE = str(ASSETS / "manage.py")
# The network of the demo's receivers.
LOOPBACK = "127.0.0.0/8"

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# After running this long a part counts as started: the next restart has no pause again.
STEADY_SECONDS = 60.0


def print_line(line: str) -> None:
    """Print to the terminal; a closed terminal must not prevent stopping."""
    try:
        print(f"inturn: {line}", file=sys.stderr, flush=True)
    except OSError:
        return


class AdoptedProcess:
    """What parts use of subprocess.Popen, for an adopted child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code; raise subprocess.TimeoutExpired if it does not end in time."""
        if timeout is None:
            return self._reap(0)
        if not processes.wait_until(lambda: self.poll() is not None, seconds=timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self.returncode

    def terminate(self) -> None:
        # Not reaped, the number cannot be another process's.
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


@dataclass(slots=True)
class Restarts:
    """When a dead part may start again: at once, then after doubling pauses."""

    in_a_row: int = 0
    due_at: float = 0.0

    def count_death(self, *, now: float, started_at: float) -> None:
        self.in_a_row = 1 if now - started_at > STEADY_SECONDS else self.in_a_row + 1
        pause = doubling_pause(
            FIRST_PAUSE_SECONDS, failures=self.in_a_row - 1, longest=LONGEST_PAUSE_SECONDS
        )
        self.due_at = now + (0.0 if self.in_a_row == 1 else pause)


@dataclass(slots=True)
class ChildProcess:
    """A command in a session of its own, with all descendants."""

    name: str
    command: list[str]
    run: str
    environment: dict[str, str]
    logs: Path | None
    stop_seconds: float
    restarts: Restarts = field(default_factory=Restarts)
    _process: subprocess.Popen[bytes] | AdoptedProcess | None = None
    _started_at: float = 0.0

    @property
    def marker(self) -> str:
        return f"{self.run}{self.name}"

    def start(self) -> None:
        """Start the command; call it from the main thread, see `end_with_parent`."""
        self._started_at = time.monotonic()
        with open_log(self.logs, self.name) as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=CHECKOUT,
                env=self.environment | {processes.MARKER: self.marker},
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGTERM),
            )

    def adopt(self, pid: int) -> None:
        """Adopt the process with this number, which runs the command, instead of starting it."""
        self._started_at = time.monotonic()
        self._process = AdoptedProcess(pid)

    def restart_if_dead(self) -> None:
        """Restart the command if it died, after a pause."""
        now = time.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            print_line(f"{self.name} ended ({_cause(code)}), starting it again")
            self.restarts.count_death(now=now, started_at=self._started_at)
            self._end_remains()
        if self._process is None and now >= self.restarts.due_at:
            self.start()

    def request_stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        """Wait for the end after `request_stop`; kill the processes after `stop_seconds`."""
        if self._process is None:
            return
        try:
            self._process.wait(self.stop_seconds)
        except subprocess.TimeoutExpired:
            print_line(f"{self.name} did not stop within {self.stop_seconds:.0f} s, killing it")
        self._end_remains()

    def _end_remains(self) -> None:
        # Children of a killed parent would go on working alongside the successor.
        process, self._process = self._process, None
        if process is not None:
            processes.send_group(signal.SIGKILL, process.pid)
            process.wait()
        processes.end_processes(
            lambda: processes.marked_processes(self.marker), [(signal.SIGKILL, 5)]
        )


@dataclass(slots=True)
class Database:
    """The embedded PostgreSQL as a part of `up`."""

    server: Server
    restarts: Restarts = field(default_factory=Restarts)
    _started_at: float = 0.0

    def start(self) -> str:
        self._started_at = time.monotonic()
        return self.server.start()

    def restart_if_dead(self) -> str | None:
        """Restart the server if it died; return the URL if it was started."""
        now = time.monotonic()
        if self.server.is_alive() or now < self.restarts.due_at:
            return None
        print_line("postgresql ended, starting it again")
        self.restarts.count_death(now=now, started_at=self._started_at)
        try:
            return self.start()
        except (PostgresError, OSError) as error:
            print_line(str(error))
            return None

    def stop(self) -> None:
        self.server.stop()


# HTTP/2 is left to a proxy in front: a connection of HTTP/2 carries 200 requests at once, which
# nothing here bounds. And granian closes a connection without requests only if it serves HTTP/1
# alone.
SILENT_MILLISECONDS = 30_000
# granian refuses a longer head with a bare 431, `config.web.header_limits` a shorter one that is
# still too long with a sentence.
HEAD_BYTES = 112 * 1024
# Many publishers are not new.
OLDEST_TLS = ("--ssl-protocol-min", "tls1.2")
SERVING = ("--interface", "rsgi", "--loop", "uvloop", "--http", "1")


def web_command(environment: Environment) -> list[str]:
    """Return granian's command.

    RSGI passes a header named FILTER_STRING on, and lets clients wait without a thread.
    """
    workers = str(environment.web_workers)
    tls = environment.tls
    encrypted = (
        ["--ssl-certificate", tls.certificate, "--ssl-keyfile", tls.key, *OLDEST_TLS] if tls else []
    )
    return [
        *(sys.executable, "-m", "config.web.granian", "config.web.rsgi:application"),
        *SERVING,
        *("--http1-header-read-timeout", str(SILENT_MILLISECONDS)),
        *("--http1-buffer-size", str(HEAD_BYTES)),
        *("--host", str(environment.listen), "--port", str(environment.port), "--workers", workers),
        *("--backpressure", str(max_connections())),
        *("--respawn-failed-workers", "--respawn-interval", "0.2", "--workers-kill-timeout", "8"),
        *("--no-ws", "--no-access-log", "--log-level", "warning"),
        *encrypted,
    ]


def cluster_command() -> list[str]:
    return [sys.executable, MANAGE, "qcluster"]


def demo_settings(environment: Environment) -> dict[str, str]:
    """Return settings for all parts of a demo, whose endpoints are on the forbidden loopback."""
    networks = dict.fromkeys([*map(str, environment.allowed_networks), LOOPBACK])
    # Empty, because a file would take precedence; the proxy's networks are included above.
    return {"INTURN_ALLOWED_NETWORKS": ",".join(networks), "INTURN_ALLOWED_NETWORKS_FILE": ""}


def _cause(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
