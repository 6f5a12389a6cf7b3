"""`prepare`: prepare the database and the files before anything serves."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, connection

from config.django_commands import reason
from delivery.lifecycle import queue_lanes

# Of the advisory lock for preparing a database; the locks of lanes, slots and duties have other
# upper halves.
PREPARE_LOCK = 0x494E0008 << 32
LOOK_EVERY_SECONDS = 0.2


class Command(BaseCommand):
    help = "Migrate, make the lanes of the queue senders, create the administrator and the bootstrap key, collect static files. May be repeated."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with self._one_at_a_time():
                call_command("migrate", interactive=False, verbosity=0)
                queue_lanes.ensure_queue_lanes(settings.ENVIRONMENT.queue_senders)
                call_command("provision")
        except OperationalError:  # Reported for all commands in one place.
            raise
        except DatabaseError as error:
            raise CommandError(f"the database refuses to be prepared: {reason(error)}") from error
        call_command("collectstatic", interactive=False, verbosity=0)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Wait for another machine that prepares this database: two migrations would collide."""
        has_waited = False
        # Polled, because waiting inside a statement would block a migration that builds an index
        # concurrently.
        while not _locked():
            if not has_waited:
                self.stdout.write("another machine prepares the database: waiting for it")
            has_waited = True
            time.sleep(LOOK_EVERY_SECONDS)
        yield
        # If the command fails, the process ends and with it the lock.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARE_LOCK])


def _locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [PREPARE_LOCK])
        row = cursor.fetchone()
    return row is not None and bool(row[0])
