"""However `up` ends, nothing of it goes on, and the next one starts."""

import signal

import pytest

from config import processes
from config.embedded.programs import USER_NAMESPACE, find_account
from tests.operation.installation import Installation, eventually, kill


def test_ctrl_c_stops_everything_and_exits_with_0(installation: Installation) -> None:
    assert installation.start() == f"ready http://127.0.0.1:{installation.port}\n"
    assert installation.stop(signal.SIGINT) == (0, "")
    assert installation.processes() == set()


def test_a_stop_while_it_starts_leaves_nothing(installation: Installation) -> None:
    installation.up = installation.launch()
    eventually(installation.postgres, "PostgreSQL runs")
    assert installation.stop(signal.SIGTERM) == (0, "")
    assert installation.processes() == set()


def test_a_killed_up_leaves_nothing_and_the_next_recovers(installation: Installation) -> None:
    installation.start()
    assert installation.up is not None
    kill(installation.up.pid)
    installation.up.communicate()
    eventually(lambda: not installation.processes(), "all of it is gone")
    installation.start()
    assert installation.is_ready()


def test_up_recovers_after_everything_was_killed(installation: Installation) -> None:
    installation.start()
    installation.kill_all()
    assert (next(installation.home.glob("postgresql-*/data")) / "postmaster.pid").exists()
    installation.start()
    assert installation.is_ready()


def test_up_ends_what_an_unguarded_one_left(installation: Installation) -> None:
    installation.start()
    assert installation.up is not None
    leftover = installation.whole("senders")
    # Without a parent's death signal and a guardian, as where a system has neither.
    processes.send(signal.SIGSTOP, {installation.guardian() or 0} | leftover)
    kill(installation.up.pid)
    installation.up.communicate()
    installation.start()
    assert not leftover & installation.processes()


@pytest.mark.skipif(find_account().prefix != USER_NAMESPACE, reason="only root can stop being root")
def test_up_runs_without_root(tmp_path_factory: pytest.TempPathFactory) -> None:
    installation = Installation(tmp_path_factory.mktemp("nobody"), prefix=USER_NAMESPACE)
    try:
        installation.start()
        assert installation.stop() == (0, "")
        assert installation.processes() == set()
    finally:
        installation.kill_all()
