"""`prepare`: what has to be done to the database and the files before anything serves."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError

from config.command_line import reason


class Command(BaseCommand):
    help = "Migrate, create the administrator and the bootstrap key, collect static files. May be repeated."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            call_command("migrate", interactive=False, verbosity=0)
        except OperationalError:  # It is away: told for all commands in one place.
            raise
        except DatabaseError as error:
            raise CommandError(f"the database refuses the migrations: {reason(error)}") from error
        call_command("provision")
        call_command("collectstatic", interactive=False, verbosity=0)
