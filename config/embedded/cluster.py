"""One PostgreSQL data folder with its password and port: made once, read by everyone.

INTURN_HOME/postgresql-18/data/      PostgreSQL's own
                          password   of the role that Inturn connects as, 0600
                          owner      that role's name, once everything is its own
                          port       where it listens, kept over restarts
                          lock       held while any process of a server lives

Inturn connects as a role that owns its database and is no superuser, so that no statement of its own, whoever wrote it, can
run programs or read files. The superuser has no password: nobody connects as it.
"""

import random
import secrets
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from config.embedded.programs import Account, PostgresError, Programs
from config.up import processes

SUPERUSER = "inturn"
OWNER = "inturn_owner"
DATABASE = "inturn"
_STATEMENTS = Path(__file__).parent
# Below the range from which systems take the ports of outgoing connections: one of
# those, made while the server restarts, would take its port away.
PORTS = range(20_000, 30_000)


@dataclass(frozen=True, slots=True)
class Cluster:
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    def url(self) -> str:
        password = (self.folder / "password").read_text()
        port = (self.folder / "port").read_text()
        return f"postgresql://{self._user()}:{password}@127.0.0.1:{port}/{DATABASE}"

    def _user(self) -> str:
        """Until everything is the owner's, an earlier version may still run on this folder, and connect as the superuser."""
        named = self.folder / "owner"
        return named.read_text() if named.exists() else SUPERUSER

    def has_url(self, url: str) -> bool:
        try:
            return self.url() == url
        except OSError:
            return False

    def pid(self) -> int | None:
        """What the server's pid file says; after a crash it names a process long gone."""
        try:
            return int(self.pid_file.read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None

    def answers_as(self, pid: int) -> bool:
        """Whether this very process, not a predecessor, has written that it takes connections."""
        try:
            lines = self.pid_file.read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def choose_port(self) -> int:
        """The port of last time if it is free, else another, remembered."""
        remembered = self.folder / "port"
        port = int(remembered.read_text()) if remembered.exists() else random.choice(PORTS)
        while not _is_free(port):
            port = random.choice(PORTS)
        remembered.write_text(str(port))
        return port

    def create(self, programs: Programs, account: Account, lock: BinaryIO) -> None:
        """Make the data folder unless it is there. A creation that was cut short starts over.

        What works on the data inherits the lock: should we be killed, nobody starts a server beside it.
        """
        account.insist_on_a_way_to(programs.folder)
        account.insist_on_a_way_to(self.folder)
        account.own(self.folder)
        if not self.data.exists():
            self._create(programs, account)
        # Made by a version that connected as the superuser, or cut short just before.
        if not (self.folder / "owner").exists():
            self._give_to_owner(programs, account, lock)

    def _create(self, programs: Programs, account: Account) -> None:
        unfinished = self.folder / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._write_password(account)
        self._initdb(unfinished, programs, account)
        self._make_database(unfinished, programs, account)
        unfinished.rename(self.data)

    def _write_password(self, account: Account) -> None:
        password = self.folder / "password"
        password.unlink(missing_ok=True)
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24))
        account.own(password)

    def _initdb(self, data: Path, programs: Programs, account: Account) -> None:
        locale = ["--locale=C.UTF-8"]
        if programs.major >= 17:
            locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command = [programs.path("initdb"), f"--pgdata={data}", f"--username={SUPERUSER}", *locale]
        command += ["--auth=scram-sha-256", f"--pwfile={self.folder / 'password'}"]
        command += ["--encoding=UTF8", "--data-checksums", "--no-instructions"]
        _run(command, account)

    def _make_database(self, data: Path, programs: Programs, account: Account) -> None:
        execute_statements(f"CREATE DATABASE {DATABASE}", account, programs, data=data, database="postgres")

    def _give_to_owner(self, programs: Programs, account: Account, lock: BinaryIO) -> None:
        """Make the owner and give it all there is. May be repeated, should it be cut short."""
        password = (self.folder / "password").read_text()
        statements = (_STATEMENTS / "owner.sql").read_text().replace("<password>", password)
        execute_statements(statements, account, programs, data=self.data, lock=lock)
        unfinished = self.folder / "owner.unfinished"
        unfinished.write_text(OWNER)
        unfinished.rename(self.folder / "owner")


def clusters_of(home: Path) -> list[Cluster]:
    """Of every major version that has run here, the newest first."""
    folders = sorted(home.glob("postgresql-*"), key=lambda path: path.name.zfill(20), reverse=True)
    return [Cluster(folder) for folder in folders]


def execute_statements(
    statements: str,
    account: Account,
    programs: Programs,
    *,
    data: Path,
    database: str = DATABASE,
    lock: BinaryIO | None = None,
) -> None:
    """Let the superuser execute them in single-user mode: nobody ever connects to a server half set up."""
    # Such a server takes a statement to end with an empty line.
    command = [programs.path("postgres"), "--single", "-j", "-D", str(data), database]
    _run(command, account, said=f"{statements.strip()}\n\n", lock=lock)


def _run(command: list[str], account: Account, *, said: str = "", lock: BinaryIO | None = None) -> None:
    done = subprocess.run(
        [*account.prefix, *command],
        input=said,
        env=processes.environment(postgres=False),
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        pass_fds=[] if lock is None else [lock.fileno()],
        **account.options,
    )
    if done.returncode != 0 or "ERROR:" in done.stderr:
        raise PostgresError(f"{Path(command[0]).name} failed: {done.stderr.strip()}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
