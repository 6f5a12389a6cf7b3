"""`restore`: restore a back-up into an empty home."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from config import env
from config.backup.manifest import BackupError
from config.backup.restoring import Restore
from config.embedded.postgres import is_embedded
from config.embedded.programs import PostgresError
from config.env import Environment
from config.up.child import print_line
from config.up.preflight import CannotStartError


class Command:
    """Not a Django command: there is no database yet."""

    help = (
        "Restore a back-up into an empty INTURN_HOME. "
        "Deliveries that may have been sent since become IN_DOUBT."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        options = self._parser(argv[0], argv[1]).parse_args(argv[2:])
        environment = env.read_environment()
        try:
            _require_embedded(environment)
            source = options.source.expanduser().absolute()
            restore = Restore(source, environment, print_line, options.nothing_sent_since)
            manifest = restore.run_restore()
        except (BackupError, CannotStartError, PostgresError) as error:
            sys.exit(f"inturn: {error}")
        print(
            f"{environment.home} has the state of {manifest.made_at}: start it with `manage.py up`"
        )

    def print_help(self, program: str, name: str) -> None:
        """Print the help for `manage.py help restore`, which calls this method."""
        self._parser(program, name).print_help()

    def _parser(self, program: str, name: str) -> ArgumentParser:
        parser = ArgumentParser(prog=f"{Path(program).name} {name}", description=self.help)
        parser.add_argument(
            "--from", dest="source", type=Path, required=True, metavar="DIR", help="the back-up"
        )
        parser.add_argument(
            "--nothing-sent-since",
            action="store_true",
            help="Inturn was stopped before the back-up and not started again: "
            "leave open deliveries open",
        )
        return parser


def _require_embedded(environment: Environment) -> None:
    url = environment.database_url
    if url and not is_embedded(url, environment.home):
        raise BackupError(
            "DATABASE_URL is set: restore that database by its server's own means, then run "
            "`manage.py mark_restored` before you start Inturn. To restore into the embedded "
            "PostgreSQL, unset DATABASE_URL"
        )
