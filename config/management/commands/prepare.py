"""`prepare`: prepare the database and the files before anything serves."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, connection
from psycopg.errors import LockNotAvailable

from config.django_commands import reason
from config.web.static_files import collect_static_files
from delivery.database.required_settings import database_refusals, database_warnings
from delivery.lifecycle import queue_lanes

# Of the advisory lock for preparing a database; all other locks have other upper halves.
PREPARE_LOCK = 0x494E0009 << 32
LOOK_EVERY_SECONDS = 0.2
LOCK_TIMEOUT_SECONDS = 2
LOCK_PAUSE_SECONDS = 3.0
LOCK_ATTEMPTS = 60


class Command(BaseCommand):
    help = (
        "Migrate, make the queue lanes, create the administrator and the bootstrap "
        "key, collect static files. May be repeated."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._refuse_unsuitable()
            with self._one_at_a_time():
                self._migrate()
                queue_lanes.ensure_queue_lanes(settings.ENVIRONMENT.queue_senders)
                call_command("provision")
                for warning in database_warnings():
                    self.stderr.write(f"warning: {warning}")
        except OperationalError:  # Reported for all commands in one place.
            raise
        except DatabaseError as error:
            raise CommandError(f"the database refuses to be prepared: {reason(error)}") from error
        collect_static_files()

    def _refuse_unsuitable(self) -> None:
        """Refuse a database unable to keep the promises, before anything is written to it."""
        for refusal in database_refusals():
            raise CommandError(refusal)

    def _migrate(self) -> None:
        """Migrate; wait for a table in use only briefly at a time.

        While a migration waits for a table, every other statement on it waits behind it. So it
        gives way, and is tried again: a failed migration is undone, and those before it stay.
        """
        for left in reversed(range(LOCK_ATTEMPTS)):
            try:
                with _lock_timeout():
                    call_command("migrate", interactive=False, verbosity=0)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                if not left:
                    raise CommandError(
                        "a table to migrate stays in use: end the oldest transactions, "
                        "which `SELECT pid, application_name, xact_start "
                        "FROM pg_stat_activity ORDER BY xact_start` shows, and start again"
                    ) from error
                self.stdout.write("a table to migrate is in use: trying again")
                time.sleep(LOCK_PAUSE_SECONDS)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Wait for another machine preparing this database: two migrations would collide."""
        has_waited = False
        # Polled, because waiting inside a statement would block a concurrent build of an index.
        while not _locked():
            if not has_waited:
                self.stdout.write("another machine prepares the database: waiting for it")
            has_waited = True
            time.sleep(LOOK_EVERY_SECONDS)
        yield
        # If the command fails, the process ends and with it the lock.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARE_LOCK])


@contextmanager
def _lock_timeout() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'")
        try:
            yield
        finally:
            cursor.execute("SET lock_timeout = 0")


def _locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [PREPARE_LOCK])
        row = cursor.fetchone()
    return row is not None and bool(row[0])
