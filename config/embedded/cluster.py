"""The PostgreSQL data folder with password and port: created once, read by all processes.

    INTURN_HOME/postgresql-18/data/      PostgreSQL's files
                              password   of the role that Inturn connects as, 0600
                              owner      name of that role, once it owns everything
                              port       to listen on, kept over restarts
                              lock       held while any process of a server lives

Inturn connects as the owner of the database, who is no superuser, so that no statement of
Inturn's, whoever wrote it, can run programs or read files. The superuser has no password, and
nobody connects as it.
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
# Below the range of ports for outgoing connections: such a connection, opened while the server
# restarts, could take its port.
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
        """Return the superuser until the owner owns everything.

        An earlier version may still run on this folder and connect as the superuser.
        """
        named = self.folder / "owner"
        return named.read_text() if named.exists() else SUPERUSER

    def has_url(self, url: str) -> bool:
        try:
            return self.url() == url
        except OSError:
            return False

    def pid(self) -> int | None:
        """Return the pid in the server's pid file; after a crash the process is long gone."""
        try:
            return int(self.pid_file.read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None

    def answers_as(self, pid: int) -> bool:
        """Return whether this very process, not a predecessor, reports to accept connections."""
        try:
            lines = self.pid_file.read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def choose_port(self) -> int:
        """Return the stored port if it is free; otherwise choose another and store it."""
        remembered = self.folder / "port"
        port = int(remembered.read_text()) if remembered.exists() else random.choice(PORTS)
        while not _is_free(port):
            port = random.choice(PORTS)
        remembered.write_text(str(port))
        return port

    def create(self, programs: Programs, account: Account, lock: BinaryIO) -> None:
        """Create the data folder if it is missing; an interrupted creation starts over.

        The programs working on the data inherit the lock: if this process is killed, no other can
        start a server on the folder meanwhile.
        """
        account.require_access(programs.folder)
        account.require_access(self.folder)
        account.own(self.folder)
        if not self.data.exists():
            self._create(programs, account)
        # The folder is from a version connecting as the superuser, or the creation was interrupted.
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
        execute_statements(
            f"CREATE DATABASE {DATABASE}", account, programs, data=data, database="postgres"
        )

    def set_epoch(self, epoch: int, programs: Programs, account: Account) -> None:
        _run([programs.path("pg_resetwal"), f"--epoch={epoch}", f"--pgdata={self.data}"], account)

    def _give_to_owner(self, programs: Programs, account: Account, lock: BinaryIO) -> None:
        """Create the owner and give it every object. Can be repeated after an interruption."""
        password = (self.folder / "password").read_text()
        statements = (_STATEMENTS / "owner.sql").read_text().replace("<password>", password)
        execute_statements(statements, account, programs, data=self.data, lock=lock)
        unfinished = self.folder / "owner.unfinished"
        unfinished.write_text(OWNER)
        unfinished.rename(self.folder / "owner")


def clusters_of(home: Path) -> list[Cluster]:
    """Return the clusters of every major version run here, newest first."""
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
    """Execute statements in single-user mode, because nobody may connect before setup ends."""
    # In single-user mode an empty line ends a statement.
    command = [programs.path("postgres"), "--single", "-j", "-D", str(data), database]
    _run(command, account, statements=f"{statements.strip()}\n\n", lock=lock)


def _run(
    command: list[str], account: Account, *, statements: str = "", lock: BinaryIO | None = None
) -> None:
    done = subprocess.run(
        [*account.prefix, *command],
        input=statements,
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
