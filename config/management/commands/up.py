"""`up`: run everything on one machine until Ctrl-C."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from config import env
from config.embedded.programs import PostgresError
from config.up.preflight import CannotStartError
from config.up.supervisor import Supervisor


class Command:
    """Not a Django command, because `up` runs for years, and that needs 4 MB of modules.

    `prepare` runs Django's checks.
    """

    help = (
        "Run everything on this machine: PostgreSQL (unless DATABASE_URL names one), "
        "web server and senders."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        options = self._parser(argv[0], argv[1]).parse_args(argv[2:])
        try:
            Supervisor(env.read_environment(), demo=options.demo).run()
        except (CannotStartError, PostgresError) as error:
            sys.exit(f"inturn: {error}")

    def print_help(self, program: str, name: str) -> None:
        """Print the help for `manage.py help up`, which calls this method."""
        self._parser(program, name).print_help()

    def _parser(self, program: str, name: str) -> ArgumentParser:
        parser = ArgumentParser(prog=f"{Path(program).name} {name}", description=self.help)
        parser.add_argument(
            "--demo", action="store_true", help="add examples and a trickle of messages"
        )
        return parser
