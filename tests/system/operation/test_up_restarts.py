"""While `up` runs: killed processes come back, and no second `up` can start."""

import subprocess
from pathlib import Path

from config.embedded import postgres
from tests.system.operation.installation import (
    DEADLINE_SECONDS,
    StartedInstallation,
    eventually,
    kill,
)


def refusal(process: subprocess.Popen[str]) -> str:
    said, complaint = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 1
    assert said == ""
    return complaint


def test_a_second_up_on_the_same_home_refuses(running: StartedInstallation) -> None:
    assert refusal(running.launch(PORT="1")).startswith("inturn: another `up` is running on")


def test_a_port_in_use_is_refused_before_anything_starts(
    running: StartedInstallation, tmp_path: Path
) -> None:
    other = StartedInstallation(tmp_path)
    complaint = refusal(other.launch(PORT=str(running.port)))
    assert (
        complaint
        == f"inturn: port {running.port} cannot be used (Address already in use): set PORT\n"
    )
    assert other.processes() == set()


def test_other_commands_find_the_running_server(running: StartedInstallation) -> None:
    url = postgres.running_url(running.home)
    assert url is not None
    assert postgres.is_embedded(url, running.home)


def test_a_killed_web_server_is_restarted(running: StartedInstallation) -> None:
    killed = running.top("web")
    kill(killed)
    eventually(lambda: running.top("web") not in (None, killed), "another web server")
    eventually(running.is_ready, "it serves")


def test_a_killed_web_worker_is_replaced(running: StartedInstallation) -> None:
    before = running.whole("web")
    kill(*before - {running.top("web")})
    eventually(lambda: running.whole("web") - before, "another worker")
    eventually(running.is_ready, "it serves")


def test_a_killed_cluster_is_restarted_and_its_workers_end(
    running: StartedInstallation,
) -> None:
    before = running.whole("cluster")
    kill(running.top("cluster"))
    eventually(lambda: running.whole("cluster") - before, "another cluster")
    eventually(lambda: not running.whole("cluster") & before, "nothing is left of the killed one")


def test_a_killed_postgresql_is_restarted_where_it_was(running: StartedInstallation) -> None:
    url = postgres.running_url(running.home)
    killed = running.postmaster()
    kill(killed)
    running.wait_for_postgres_after(killed)
    assert postgres.running_url(running.home) == url


def test_a_killed_guardian_is_replaced(running: StartedInstallation) -> None:
    killed = running.guardian()
    kill(killed)
    eventually(lambda: running.guardian() not in (None, killed), "another guardian")
