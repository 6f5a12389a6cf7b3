"""The addresses on which the web server listens: one of this machine's, or all."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.rest import SECONDS
from tests.system.operation.installation import StartedInstallation
from tests.system.operation.test_refusals import refusal

ELSEWHERE = "127.0.0.2"


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.fixture
def stopped(installation: StartedInstallation) -> Iterator[StartedInstallation]:
    """The shared installation, which the test starts with another address."""
    if installation.is_running():
        installation.stop()
    yield installation
    installation.kill_all()


def test_the_server_listens_only_on_its_address(stopped: StartedInstallation) -> None:
    stopped.up = stopped.launch(INTURN_LISTEN=ELSEWHERE)
    url = f"http://{ELSEWHERE}:{stopped.port}"
    assert stopped.first_line() == f"ready {url}\n"
    assert requests.get(f"{url}/readyz", timeout=SECONDS).status_code == 200
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{stopped.port}/readyz", timeout=SECONDS)
    assert stopped.stop() == (0, "")


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_the_server_listens_on_ipv6(stopped: StartedInstallation) -> None:
    stopped.up = stopped.launch(INTURN_LISTEN="[::1]")
    url = f"http://[::1]:{stopped.port}"
    assert stopped.first_line() == f"ready {url}\n"
    assert requests.get(f"{url}/readyz", timeout=SECONDS).status_code == 200
    assert stopped.stop() == (0, "")


def test_an_address_that_is_not_this_machines_is_refused(tmp_path: Path) -> None:
    told = refusal(tmp_path, "up", INTURN_LISTEN="192.0.2.77")
    assert told == "inturn: 192.0.2.77 is no address of this machine: set INTURN_LISTEN\n"
