"""`backup`: write the database, the keys and the archive's ledger into a new folder."""

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from config import env
from config.backup.manifest import BackupError
from config.backup.restore_marker import require_no_unfinished_restore
from config.embedded.cluster import clusters_of
from config.embedded.postgres import Server
from config.embedded.programs import PostgresError
from config.env import Environment
from config.up import processes
from config.up.child import MANAGE
from config.up.preflight import CannotStartError, single_instance


class Command:
    """Not a Django command: the database may have to be started first."""

    help = (
        "Make a back-up in a new folder, while Inturn runs or not. "
        "It has all keys and payloads: protect it."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        options = self._parser(argv[0], argv[1]).parse_args(argv[2:])
        environment = env.read_environment()
        require_no_unfinished_restore(environment.home)
        target = options.target.expanduser().absolute()
        try:
            sys.exit(_back_up(target, environment))
        except (BackupError, CannotStartError, PostgresError) as error:
            sys.exit(f"inturn: {error}")

    def print_help(self, program: str, name: str) -> None:
        """Print the help for `manage.py help backup`, which calls this method."""
        self._parser(program, name).print_help()

    def _parser(self, program: str, name: str) -> ArgumentParser:
        parser = ArgumentParser(prog=f"{Path(program).name} {name}", description=self.help)
        parser.add_argument(
            "--to",
            dest="target",
            type=Path,
            required=True,
            metavar="DIR",
            help="a folder that does not exist",
        )
        return parser


def _back_up(target: Path, environment: Environment) -> int:
    if environment.database_url:
        return _write(target, environment.database_url)
    if not any(cluster.data.exists() for cluster in clusters_of(environment.home)):
        raise BackupError(f"{environment.home} has no database: set INTURN_HOME or DATABASE_URL")
    # Nothing else runs on the home: the server is started for the back-up alone.
    with single_instance(environment.home):
        server = Server(environment.home)
        try:
            return _write(target, server.start())
        finally:
            server.stop()


def _write(target: Path, url: str) -> int:
    command = [sys.executable, MANAGE, "write_backup", "--to", str(target)]
    given = processes.environment() | {"DATABASE_URL": url}
    return subprocess.run(command, env=given, stdin=subprocess.DEVNULL, check=False).returncode
