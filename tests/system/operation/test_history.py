"""The pipeline's loop: it starts due runs in processes, also after any process has died.

due ─▶ WAITING ─▶ its process begins ─▶ RUNNING ─▶ DONE
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config.embedded.postgres import running_url
from config.up import processes
from tests.system.operation.installation import StartedInstallation, eventually, kill

# A table that the first statements of an export need, and no other part of Inturn.
NEEDED = "delivery_archivechunk"


class History:
    """The pipeline of an installation, as its database and the system see it."""

    def __init__(self, installation: StartedInstallation) -> None:
        self._installation = installation

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        url = running_url(self._installation.home)
        assert url is not None
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection

    @contextmanager
    def held(self) -> Iterator[None]:
        """Stop every export in its middle, within the block."""
        with self.connected() as connection, connection.transaction():
            connection.execute(f"LOCK TABLE {NEEDED} IN ACCESS EXCLUSIVE MODE")
            yield

    def let_be_due(self) -> None:
        with self.connected() as connection:
            connection.execute(
                "UPDATE delivery_pipelineschedule SET next_at = now() WHERE step = 'EXPORT'"
            )

    def newest(self) -> tuple[int, str, str]:
        """Return id, state and error of the newest export."""
        with self.connected() as connection:
            found = connection.execute(
                "SELECT id, state, error FROM delivery_pipelinerun WHERE step = 'EXPORT' "
                "ORDER BY id DESC LIMIT 1"
            ).fetchone()
        return (0, "", "") if found is None else (found[0], found[1], found[2])

    def wait_for_next(self, than: int, state: str) -> None:
        def is_so() -> bool:
            id, now, _ = self.newest()
            return id > than and now == state

        eventually(is_so, f"a later export than {than} is {state}")

    def wait_until(self, id: int, state: str) -> None:
        eventually(lambda: self.newest()[:2] == (id, state), f"export {id} is {state}")

    def begin(self) -> tuple[int, int]:
        """Start an export, while it is held; return its id and its process."""
        before = self.newest()[0]
        self.let_be_due()
        self.wait_for_next(before, "RUNNING")
        (pid,) = self.running()
        return self.newest()[0], pid

    def running(self) -> set[int]:
        """Return the processes of the current runs."""
        return {pid for pid in self._installation.whole("cluster") if is_run(pid)}

    def worker(self) -> int:
        """Return the process that starts them."""
        (pid,) = self.running()
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_run(pid: int) -> bool:
    try:
        return b"\0history\0run\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture
def history(running: StartedInstallation) -> History:
    return History(running)


def test_a_due_schedule_runs_once(history: History) -> None:
    before = history.newest()[0]
    history.let_be_due()
    history.wait_for_next(before, "DONE")
    eventually(lambda: not history.running(), "its process has ended")
    with history.connected() as connection:
        row = connection.execute(
            "SELECT next_at > now() + interval '50 minutes' FROM delivery_pipelineschedule "
            "WHERE step = 'EXPORT'"
        ).fetchone()
    assert row == (True,)


def test_the_process_that_waits_for_runs_is_small(
    history: History, running: StartedInstallation
) -> None:
    eventually(lambda: len(running.whole("cluster")) > 1, "the cluster is there")
    maps = [Path(f"/proc/{pid}/maps") for pid in running.whole("cluster") - history.running()]
    assert maps
    assert not [path for path in maps if "pyarrow" in path.read_text()]


@pytest.mark.slow
def test_a_killed_run_has_failed_and_the_next_is_done(history: History) -> None:
    with history.held():
        id, pid = history.begin()
        kill(pid)
        history.wait_until(id, "FAILED")
        assert "It was killed" in history.newest()[2]
    history.let_be_due()
    history.wait_for_next(id, "DONE")


@pytest.mark.slow
def test_a_run_of_a_killed_worker_starts_again(
    history: History, running: StartedInstallation
) -> None:
    with history.held():
        id, pid = history.begin()
        kill(history.worker())
        eventually(lambda: pid not in running.processes(), "the run ended with whom had begun it")
        eventually(lambda: history.running() - {pid}, "it has begun again")
    history.wait_until(id, "DONE")


@pytest.mark.slow
def test_when_inturn_stops_a_run_waits_for_the_next_start(
    history: History, running: StartedInstallation
) -> None:
    with history.held():
        id, pid = history.begin()
        top = running.top("cluster")
        assert top is not None
        processes.send_signal(signal.SIGTERM, [top])
        eventually(lambda: pid not in running.processes(), "the run has ended")
        # `up` presumed the cluster dead.
        eventually(lambda: history.running() - {pid}, "it has begun again")
    history.wait_until(id, "DONE")


@pytest.mark.slow
def test_a_restarted_database_fails_the_run_and_the_next_is_done(
    history: History, running: StartedInstallation
) -> None:
    killed = running.postmaster()
    # The lock ends with the server.
    with suppress(psycopg.OperationalError), history.held():
        id, _ = history.begin()
        kill(killed)
    running.wait_for_postgres_after(killed)
    history.wait_until(id, "FAILED")
    history.let_be_due()
    history.wait_for_next(id, "DONE")
