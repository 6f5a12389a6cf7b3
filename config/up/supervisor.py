"""The supervisor of `up`: it starts, watches and stops the parts, in order."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from config.backup.restore_marker import require_no_unfinished_restore
from config.embedded import postgres
from config.env import CHECKOUT, Environment
from config.up import processes
from config.up.child import (
    LOOPBACK,
    MANAGE,
    ChildProcess,
    Database,
    cluster_command,
    demo_settings,
    print_line,
    web_command,
)
from config.up.launcher import CLUSTER, WEB
from config.up.launching import launch_parts
from config.up.logfiles import rotate_logs
from config.up.preflight import (
    CannotStartError,
    exposure,
    require_free_port,
    single_instance,
)
from config.up.probe import is_ready
from config.up.tls import require_usable
from config.version import version
from delivery.cluster.file_limit import raise_file_limit
from delivery.management.doctor.python_version import python_weakness

DEMO = "demo"

READY_SECONDS = 120
GIVE_UP_AFTER_DEATHS = 5
READY_LOOK_SECONDS = 0.1
LOOK_EVERY_SECONDS = 0.5
WEB_STOP_SECONDS = 10.0
CLUSTER_STOP_SECONDS = 15.0
# Unbuffered, so that output just before a crash reaches the log.
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}


class StopRequested(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived; like KeyboardInterrupt not an Exception."""


class Supervisor:
    """An `up`, from the first check to the end of the last process."""

    def __init__(self, environment: Environment, *, demo: bool = False) -> None:
        self._environment = environment
        self._demo = demo
        # Settings for all parts, in addition to this process's environment.
        self._settings = UNBUFFERED | (demo_settings(environment) if demo else {})
        self._home = environment.home
        self._logs = None if environment.log_to == "STDOUT" else self._home / "logs"
        # Starts with the home, so that the next `up` finds the processes left by this `up`.
        self._run = f"{self._home}#{secrets.token_hex(4)}#"
        self._database: Database | None = None
        self._parts: list[ChildProcess] = []
        self._guardian: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Run until a stop is requested, then return with nothing left running.

        Raises CannotStartError if it never became ready.
        """
        with _signals_raise(), single_instance(self._home):
            try:
                self._start()
                self._watch()
            except StopRequested:
                print_line("stopping")
                notify_service_manager("STOPPING=1")
            finally:
                _ignore_signals()
                self._stop()

    def _start(self) -> None:
        require_no_unfinished_restore(self._home)
        raise_file_limit()
        processes.end_processes(
            lambda: processes.marked_processes(f"{self._home}#"), [(signal.SIGKILL, 10)]
        )
        require_free_port(self._environment.listen, self._environment.port)
        if self._environment.tls is not None:
            require_usable(self._environment.tls)
        for warning in exposure(self._environment):
            print_line(warning)
        self._guard()
        environment = self._start_database()
        self._prepare(environment)
        if weakness := python_weakness():
            print_line(f"warning: {weakness}")
        self._parts = self._make_parts(environment)
        print_line(
            f"Inturn {version()}, "
            f"{f'logs are in {self._logs}' if self._logs else 'logs follow here'}"
        )
        if self._demo:
            print_line(
                f"demo: endpoints may also be in {LOOPBACK}, as if INTURN_ALLOWED_NETWORKS had it"
            )
        adopted = launch_parts([part for part in self._parts if part.name != DEMO])
        for part in self._parts:
            if part.name not in adopted:
                part.start()
        self._wait_until_ready()
        _announce(f"ready {self._environment.own_url}")
        notify_service_manager("READY=1")

    def _start_database(self) -> dict[str, str]:
        """Start PostgreSQL unless a URL is given, and return the environment of all parts."""
        url = self._environment.database_url
        if url and not postgres.is_embedded(url, self._home):
            return processes.environment() | self._settings
        self._database = Database(postgres.Server(self._home, logs_to_stdout=self._logs is None))
        return self._environment_for(self._database.start())

    def _environment_for(self, url: str) -> dict[str, str]:
        return processes.environment(postgres=False) | self._settings | {"DATABASE_URL": url}

    def _prepare(self, environment: dict[str, str]) -> None:
        done = subprocess.run(
            [sys.executable, MANAGE, "prepare"],
            stdin=subprocess.DEVNULL,
            # Standard output is reserved for the line tools wait for.
            stdout=sys.stderr,
            cwd=CHECKOUT,
            env=environment | processes.used_once() | {processes.MARKER: f"{self._run}prepare"},
            start_new_session=True,
            check=False,
        )
        if done.returncode != 0:
            raise CannotStartError("the database could not be prepared: see above")

    def _make_parts(self, environment: dict[str, str]) -> list[ChildProcess]:
        def part(name: str, command: list[str], stop_seconds: float) -> ChildProcess:
            return ChildProcess(name, command, self._run, environment, self._logs, stop_seconds)

        parts = [part(WEB, web_command(self._environment), WEB_STOP_SECONDS)]
        parts.append(part(CLUSTER, cluster_command(), CLUSTER_STOP_SECONDS))
        if self._demo:
            parts.insert(0, part(DEMO, [sys.executable, MANAGE, DEMO], WEB_STOP_SECONDS))
        return parts

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not is_ready(self._environment.own_url):
            self._restart_dead_parts()
            time.sleep(READY_LOOK_SECONDS)
            failing = [
                part.name for part in self._parts if part.restarts.in_a_row >= GIVE_UP_AFTER_DEATHS
            ]
            if failing or time.monotonic() > deadline:
                name = failing[0] if failing else WEB
                where = "above" if self._logs is None else f"{self._logs}/{name}.log"
                raise CannotStartError(f"{name} does not become ready: see {where}")

    def _watch(self) -> None:
        while True:
            self._restart_dead_parts()
            time.sleep(LOOK_EVERY_SECONDS)

    def _restart_dead_parts(self) -> None:
        if self._guardian is not None and self._guardian.poll() is not None:
            self._guard()
        url = self._database.restart_if_dead() if self._database else None
        if url is not None:
            self._move_to(url)
        for part in self._parts:
            part.restart_if_dead()
        if self._logs is not None:
            rotate_logs(self._logs)

    def _move_to(self, url: str) -> None:
        """Restart the parts with the old URL, if PostgreSQL could not get the port again."""
        for part in self._parts:
            if part.environment["DATABASE_URL"] != url:
                part.request_stop()
                part.stop()
                part.environment = self._environment_for(url)

    def _guard(self) -> None:
        self._guardian = subprocess.Popen(
            # Tied to us by the pipe alone: without site and environment it is small and always
            # starts.
            [sys.executable, "-E", "-S", "-m", "config.up.guardian", self._run],
            stdin=subprocess.PIPE,
            # Nobody who waits for our output to end should wait for it, as it may outlive us by
            # seconds.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=CHECKOUT,
            env=processes.environment(),
            start_new_session=True,
        )

    def _stop(self) -> None:
        """Stop the web server first, so that nothing new is accepted, and PostgreSQL last.

        The demo stops after the senders: without receivers each lane of the demo would block.
        """
        names = ([WEB], [CLUSTER], [DEMO])
        in_order = [[part for part in self._parts if part.name in stage] for stage in names]
        for stage in in_order:
            for part in stage:
                part.request_stop()
            for part in stage:
                part.stop()
        if self._database is not None:
            self._database.stop()
        processes.end_processes(
            lambda: processes.marked_processes(self._run), [(signal.SIGKILL, 5)]
        )
        if self._guardian is not None:
            self._guardian.communicate()


@contextmanager
def _signals_raise() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        _ignore_signals()
        raise StopRequested

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # `nohup` ignores SIGHUP, so that the command survives its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    except StopRequested:  # Before there was anything to stop.
        return


def _ignore_signals() -> None:
    """Ignore further signals, so that a second request does not interrupt the stop."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _announce(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError:
        print_line(line)


def notify_service_manager(state: str) -> None:
    """Send the state, such as `READY=1`, if a service manager has started this process."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # An abstract address begins with NUL, which no environment can have.
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.sendto(state.encode(), path)
    except OSError:
        return
