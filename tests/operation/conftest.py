"""An installation that runs for all tests of a module, and one that each test starts and ends itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operation.installation import Installation


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("home"))
    try:
        installation.start()
        yield installation
    finally:
        installation.kill_all()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: what a test leaves is what the next `up` has to cope with anyway."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def installation(home: Path) -> Iterator[Installation]:
    installation = Installation(home)
    try:
        yield installation
    finally:
        installation.kill_all()
