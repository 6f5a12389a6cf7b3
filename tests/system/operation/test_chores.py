"""The cluster stops on a signal, and its chores come back after any process dies."""

import re
import signal
import time

import psycopg
import pytest

from config.embedded.postgres import running_url
from config.up import processes
from tests.system.operation.installation import StartedInstallation, eventually, kill

# An idle worker has nothing to wait for; a loaded machine gets some grace.
STOP_SECONDS = 10.0
WORKER = re.compile(r"inturn chores (\d+)")


def worker(of: StartedInstallation) -> int | None:
    """Return the process that runs the chores, None if there is none."""
    url = running_url(of.home)
    if url is None:
        return None
    try:
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT application_name FROM pg_stat_activity").fetchall()
    except psycopg.OperationalError:
        return None
    return next((int(found[1]) for (name,) in rows if (found := WORKER.match(name or ""))), None)


@pytest.mark.slow
def test_the_chores_stop_soon_and_leave_no_process(running: StartedInstallation) -> None:
    eventually(lambda: worker(running), "somebody does chores")
    before, top = running.whole("cluster"), running.top("cluster")
    assert top is not None
    asked_at = time.monotonic()
    processes.send_signal(signal.SIGTERM, [top])
    eventually(lambda: not running.whole("cluster") & (before - {top}), "nobody works any more")
    assert time.monotonic() - asked_at < STOP_SECONDS
    eventually(lambda: not running.whole("cluster") & before, "all of it is gone")
    # `up` presumed it dead.
    eventually(lambda: worker(running), "another does chores")


@pytest.mark.slow
def test_a_killed_cluster_is_restarted_and_its_worker_ends(running: StartedInstallation) -> None:
    before = running.whole("cluster")
    kill(running.top("cluster"))
    eventually(lambda: running.whole("cluster") - before, "another cluster")
    eventually(lambda: not running.whole("cluster") & before, "nothing is left of the killed one")
    eventually(lambda: worker(running), "its worker does chores")


def test_a_killed_worker_is_replaced(running: StartedInstallation) -> None:
    eventually(lambda: worker(running), "somebody does chores")
    killed = worker(running)
    kill(killed)
    eventually(lambda: worker(running) not in (None, killed), "another does chores")


def test_the_chores_continue_after_a_database_restart(running: StartedInstallation) -> None:
    eventually(lambda: worker(running), "somebody does chores")
    before, killed = running.whole("cluster"), running.postmaster()
    kill(killed)
    running.wait_for_postgres_after(killed)
    eventually(lambda: worker(running) in before, "the same worker does chores")
