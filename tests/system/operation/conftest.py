"""One installation for all tests here: the next `up` has to cope with a test's leftovers."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from config.embedded.postgres import THROWAWAY, Server
from tests.support.databases import database_beside
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


@pytest.fixture(scope="session")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the data folder of a server that has run and ended."""
    home = tmp_path_factory.mktemp("created")
    server = Server(home, settings=THROWAWAY)
    server.start()
    server.stop()
    return home


@pytest.fixture
def server(created: Path, tmp_path: Path) -> Iterator[Server]:
    """A server on a copy of `created`: that takes a quarter of the time of a new data folder."""
    home = tmp_path / "home"
    # With the owners, which differ by the account that runs PostgreSQL here.
    subprocess.run(["cp", "-a", str(created), str(home)], check=True)
    server = Server(home, settings=THROWAWAY)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def empty_database() -> Iterator[str]:
    """The URL of an empty database."""
    server, name = os.environ["DATABASE_URL"], f"empty_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection, database_beside(connection, name):
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
