"""One installation for all tests here: the next `up` has to cope with a test's leftovers."""

from collections.abc import Iterator

import pytest

from tests.system.operation.installation import StartedInstallation


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartedInstallation]:
    installation = StartedInstallation(tmp_path_factory.mktemp("home"))
    try:
        yield installation
    finally:
        installation.kill_all()


@pytest.fixture
def running(installation: StartedInstallation) -> StartedInstallation:
    if not installation.is_running():
        installation.start()
    return installation
