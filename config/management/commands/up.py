"""`up`: everything on one machine, until Ctrl-C."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config import env
from config.embedded.programs import PostgresError
from config.grounds import CannotStartError
from config.supervisor import Supervisor


class Command(BaseCommand):
    help = (
        "Run everything on this machine: PostgreSQL (unless DATABASE_URL names one), web server and senders."
    )
    # Started without Django's apps, see config/command_line.py; `prepare` checks them.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="add examples and a trickle of messages")

    def handle(self, *args: Any, demo: bool, **options: Any) -> None:
        try:
            Supervisor(env.read(), demo=demo).run()
        except (CannotStartError, PostgresError) as error:
            sys.exit(f"inturn: {error}")
