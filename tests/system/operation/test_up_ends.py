"""However `up` ends, none of its processes survives, and the next one starts."""

import signal
from pathlib import Path

import pytest

from config.embedded.programs import USER_NAMESPACE, find_account
from config.up import processes
from tests.system.operation.installation import StartedInstallation, eventually


def test_ctrl_c_stops_everything_and_exits_with_0(running: StartedInstallation) -> None:
    assert running.stop(signal.SIGINT) == (0, "")
    assert running.processes() == set()


def test_a_stop_during_the_start_leaves_no_process(installation: StartedInstallation) -> None:
    if installation.is_running():
        installation.stop()
    installation.up = installation.launch()
    eventually(installation.postgres, "PostgreSQL runs")
    assert installation.stop(signal.SIGTERM) == (0, "")
    assert installation.processes() == set()


def test_a_killed_up_leaves_no_process_and_the_next_recovers(running: StartedInstallation) -> None:
    running.kill_up()
    eventually(lambda: not running.processes(), "all of it is gone")
    running.start()
    assert stack(running.top("web")) == stack(running.top("cluster")), "one process forked both"


def stack(pid: int | None) -> str:
    """Return where the stack of a process is: random, and the same after a fork."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    addresses = next(line.split()[0] for line in maps if line.endswith("[stack]"))
    return addresses.partition("-")[2]


# Starts a thread in the launcher, which forked processes would not have.
THREADED = """
import sys, threading
if "config.up.launcher" in sys.orig_argv:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.mark.slow
def test_web_server_and_cluster_start_alone_if_the_launcher_fails(
    installation: StartedInstallation, tmp_path: Path
) -> None:
    if installation.is_running():
        installation.stop()
    (tmp_path / "sitecustomize.py").write_text(THREADED)
    installation.up = installation.launch(PYTHONPATH=str(tmp_path))
    assert installation.first_line().startswith("ready ")
    assert stack(installation.top("web")) != stack(installation.top("cluster"))
    assert installation.stop() == (0, "")
    assert installation.processes() == set()


@pytest.mark.slow
def test_up_recovers_after_everything_was_killed(running: StartedInstallation) -> None:
    running.kill_all()
    assert (next(running.home.glob("postgresql-*/data")) / "postmaster.pid").exists()
    running.start()


@pytest.mark.slow
def test_up_ends_the_processes_of_an_unguarded_one(running: StartedInstallation) -> None:
    guardian, leftover = running.guardian(), running.whole("cluster")
    assert guardian is not None
    # Stopped, they cannot notice that their parent dies, as on a system without means for it.
    processes.send_signal(signal.SIGSTOP, {guardian} | leftover)
    running.kill_up()
    running.start()
    assert not leftover & running.processes()


@pytest.mark.skipif(find_account().prefix != USER_NAMESPACE, reason="only root can stop being root")
@pytest.mark.slow
def test_up_runs_without_root(tmp_path_factory: pytest.TempPathFactory) -> None:
    installation = StartedInstallation(tmp_path_factory.mktemp("nobody"), prefix=USER_NAMESPACE)
    try:
        installation.start()
        assert installation.stop() == (0, "")
        assert installation.processes() == set()
    finally:
        installation.kill_all()
