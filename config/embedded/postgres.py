"""The embedded PostgreSQL server: start, stop, and discovery of a running server. Stdlib only."""

import fcntl
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from config.embedded.cluster import Cluster, clusters_of
from config.embedded.programs import PostgresError, find_account, find_programs
from config.up import processes
from config.up.logfiles import last_lines, open_log
from delivery.cluster.orphans import end_with_parent

# For a small machine that must not lose a commit. PostgreSQL's defaults apply to all other
# settings.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # About 25 are used with the default number of web workers and senders; each costs memory even
    # unused.
    "max_connections": "150",
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "192MB",
    "max_wal_size": "2GB",
    "min_wal_size": "256MB",
    "checkpoint_timeout": "15min",
    # A commit is flushed by the waiting session. The WAL writer, which looks five times a second by
    # default, would only add flushes: of transactions that notify, and flush nothing.
    "wal_writer_delay": "1s",
    "random_page_cost": "1.1",
    # Plans here are short and many; compilation costs more than execution.
    "jit": "off",
    # A queue's tables are rewritten completely within a minute.
    "autovacuum_naptime": "10s",
    # Logical replication is not used, so this saves a process.
    "max_logical_replication_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %a ",
    # Statements and details (such as "Failing row contains") contain people's and applications'
    # data, because Django writes values into the statement. The message itself is logged, and
    # Inturn's own logs say more.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}
# The data is temporary, and tests kill processes, not machines.
THROWAWAY: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off"}

RECOVERY_SECONDS = 600
ATTEMPTS = 3


class Server:
    """A server on INTURN_HOME's data folder, which runs as a child of this process.

    The caller holds the lock on the home, so any other server on this folder is an orphan, and
    `start` ends it first. When this process dies, the kernel stops the server.
    """

    def __init__(
        self, home: Path, *, settings: Mapping[str, str] | None = None, logs_to_stdout: bool = False
    ) -> None:
        self._home = home
        self._logs = None if logs_to_stdout else home / "logs"
        self._settings = {**SETTINGS, **(settings or {})}
        self._programs = find_programs()
        self._account = find_account()
        self.cluster = Cluster(home / f"postgresql-{self._programs.major}")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the server, create its data folder if needed, and return the URL once it answers.

        Waits as long as PostgreSQL takes to recover from a crash. Call it from the main thread: see
        `end_with_parent`.
        """
        self._require_same_major()
        self.cluster.folder.mkdir(parents=True, exist_ok=True)
        with self.cluster.lock.open("ab") as lock:
            self._take(lock)
            self.cluster.create(self._programs, self._account, lock)
            self._start(lock)
        return self.cluster.url()

    def stop(self) -> None:
        """Stop and wait. Open transactions are rolled back; no commit is lost."""
        if self._process is None:
            return
        # SIGINT is PostgreSQL's fast stop; SIGTERM would wait for the clients without limit.
        for number, seconds in ((signal.SIGINT, 30), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
            self._process.send_signal(number)
            try:
                self._process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        self._process = None

    def set_epoch(self, epoch: int) -> None:
        """Let the numbers of transactions begin in this epoch; the server must be stopped."""
        self.cluster.set_epoch(epoch, self._programs, self._account)

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _require_same_major(self) -> None:
        """Refuse to start empty if the data here is another major version's, and unreadable."""
        others = [cluster.folder for cluster in clusters_of(self._home) if cluster.data.exists()]
        if others and self.cluster.folder not in others:
            raise PostgresError(
                f"the data in {others[0]} is not of PostgreSQL {self._programs.major}, which is "
                "installed now and would begin empty beside it: go back to the version that made "
                "it, and move the data as the guide says (templates/guide/operating.md) under *A "
                "new major version of PostgreSQL*; or set DATABASE_URL"
            )

    def _take(self, lock: BinaryIO) -> None:
        """Hold the lock, inherited by a server's processes: no two servers share a folder."""
        if not _try_lock(lock):
            self._evict()
            if not processes.wait_until(lambda: _try_lock(lock), seconds=10):
                raise PostgresError(
                    f"another PostgreSQL that is not visible here uses {self.cluster.data}"
                )
        # While the lock is held no server uses the folder, whatever the pid file says; PostgreSQL
        # itself would believe the file if another process has the number by now.
        self.cluster.pid_file.unlink(missing_ok=True)

    def _evict(self) -> None:
        def serving() -> set[int]:
            return processes.working_in(self.cluster.data)

        postmaster = self.cluster.pid()
        if postmaster in serving():
            processes.end_processes(lambda: serving() & {postmaster}, [(signal.SIGINT, 10)])
        processes.end_processes(serving, [(signal.SIGQUIT, 1), (signal.SIGKILL, 5)])

    def _start(self, lock: BinaryIO) -> None:
        for _ in range(ATTEMPTS):
            port = self.cluster.choose_port()
            # A stop between the start of the server and the assignment would forget the server.
            with _signals_held() as mask:
                self._process = self._launch(port, lock, mask)
            if self._answers():
                return
        if self._logs is None:
            raise PostgresError("PostgreSQL does not start: see above")
        log = self._logs / "postgresql.log"
        raise PostgresError(f"PostgreSQL does not start; {log} ends with:\n{last_lines(log)}")

    def _launch(
        self, port: int, lock: BinaryIO, mask: set[signal.Signals]
    ) -> subprocess.Popen[bytes]:
        """Start the server, with this mask of signals."""
        end_with_us = end_with_parent(signal.SIGINT)

        def arrange() -> None:
            end_with_us()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        command = [self._programs.path("postgres"), "-D", str(self.cluster.data), "-p", str(port)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with open_log(self._logs, "postgresql") as log:
            return subprocess.Popen(
                [*self._account.prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=processes.environment(postgres=False),
                pass_fds=[lock.fileno()],
                start_new_session=True,
                preexec_fn=arrange,
                **self._account.options,
            )

    def _answers(self) -> bool:
        process = self._process
        assert process is not None

        def decided() -> bool:
            return process.poll() is not None or self.cluster.answers_as(process.pid)

        processes.wait_until(decided, seconds=RECOVERY_SECONDS, pause=0.01)
        return process.poll() is None


def running_url(home: Path) -> str | None:
    """Return the URL of `up`'s server on this home, or None.

    Reads files only and never connects: the server may still refuse connections.
    """
    for cluster in clusters_of(home):
        pid = cluster.pid()
        if pid is not None and processes.is_alive(pid):
            try:
                return cluster.url()
            except OSError:
                continue
    return None


def is_embedded(url: str, home: Path) -> bool:
    """Return whether the URL belongs to this home's own server, running or not."""
    return any(cluster.has_url(url) for cluster in clusters_of(home))


@contextmanager
def throwaway() -> Iterator[str]:
    """Yield the URL of a temporary server for tests."""
    home = Path(tempfile.mkdtemp(prefix="inturn-"))
    # PostgreSQL may have to run as nobody, which needs to pass through the folder.
    home.chmod(0o711)
    server = Server(home, settings=THROWAWAY)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _signals_held() -> Iterator[set[signal.Signals]]:
    """Let the signals that stop `up` wait, and yield the mask of before."""
    stops = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        yield {signal.Signals(number) for number in mask}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _try_lock(lock: BinaryIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
