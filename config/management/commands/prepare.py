"""`prepare`: what has to be done to the database and the files before anything serves."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError

from config.command_line import reason
from delivery import queue_lanes


class Command(BaseCommand):
    help = "Migrate, make the lanes of the queue senders, create the administrator and the bootstrap key, collect static files. May be repeated."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            call_command("migrate", interactive=False, verbosity=0)
        except OperationalError:  # It is away: told for all commands in one place.
            raise
        except DatabaseError as error:
            raise CommandError(f"the database refuses the migrations: {reason(error)}") from error
        queue_lanes.ensure(settings.ENVIRONMENT.queue_senders)
        call_command("provision")
        call_command("collectstatic", interactive=False, verbosity=0)
