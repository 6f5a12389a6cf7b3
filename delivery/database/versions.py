"""A database of another version is refused before any migration runs on it."""

from typing import Any

from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.loader import MigrationLoader

OURS = ("delivery", "subscriptions")


def refuse_another_version(*, using: str, **_: Any) -> None:
    """Refuse a database with migrations that this version does not have.

    Those are migrations from before the first release.
    """
    loader = MigrationLoader(connections[using])
    unknown = sorted(
        name for name in loader.applied_migrations.keys() - loader.disk_migrations.keys() if name[0] in OURS
    )
    if unknown:
        raise CommandError(
            f"this database is of another version of Inturn, with the migration {'.'.join(unknown[0])}, and its data cannot be "
            "taken over: start with an empty one, in another INTURN_HOME or under another DATABASE_URL"
        )
