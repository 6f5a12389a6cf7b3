"""`ready`: exit with 0 if a part of this machine works, for the health checks of containers."""

import sys
from argparse import ArgumentParser
from pathlib import Path

import psycopg
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.env import Environment
from config.up.probe import is_ready
from delivery.database.parts import PARTS, session_parameters
from delivery.database.statements import statement

WEB = "web"
CONNECT_SECONDS = 5


class Command:
    """Not a Django command: it runs every few seconds, and needs a single statement."""

    help = "Exit with 0 if the web server of this machine, or another part of it, is at work."

    def run_from_argv(self, argv: list[str]) -> None:
        options = self._parser(argv[0], argv[1]).parse_args(argv[2:])
        if not is_at_work(options.part, env.read_environment()):
            sys.exit(f"inturn: {options.part} not ready")

    def print_help(self, program: str, name: str) -> None:
        """Print the help for `manage.py help ready`, which calls this method."""
        self._parser(program, name).print_help()

    def _parser(self, program: str, name: str) -> ArgumentParser:
        parser = ArgumentParser(prog=f"{Path(program).name} {name}", description=self.help)
        parser.add_argument(
            "--part", choices=(WEB, *PARTS), default=WEB, help="which part (default: web)"
        )
        return parser


def is_at_work(part: str, environment: Environment) -> bool:
    """Return whether the part works here: the other parts are known by their sessions.

    A session counts if it comes from the address of this machine, as the database sees it.
    """
    if part == WEB:
        return is_ready(environment.own_url)
    if not environment.database_url:
        raise ImproperlyConfigured("DATABASE_URL: it is not set, and no database runs here")
    try:
        with psycopg.connect(
            environment.database_url, connect_timeout=CONNECT_SECONDS, application_name="inturn"
        ) as connection:
            found = connection.execute(
                statement("running_sessions").encode(), session_parameters(is_own=True)
            )
            running: dict[str, int] = dict(found.fetchall())
            return running[part] > 0
    except psycopg.OperationalError:
        return False
