"""A database that this version does not know is refused, before anything writes to it.

    unknown migrations | all of ours are applied | the database is
    none               | yes or no               | ours, or older: migrating makes it ours
    some               | yes                     | of a newer version: older code would write rows
                       |                         | that it does not understand
    some               | no                      | from before the first release, when migrations
                       |                         | were squashed

A squash may use old names again, but not for the last migration of `delivery`: a database from
before it lacks that one, and so is not mistaken for one of a newer version.

The fence is at the start of `prepare`, of `qcluster` and, by `/readyz`, of the web server.
Processes that run already go on: a new version may be started beside them while machines are
replaced one after another.
"""

from typing import Any

from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.loader import MigrationLoader

OURS = ("delivery", "subscriptions")
DEFAULT = "default"


def refuse_another_version(*, using: str, **_: Any) -> None:
    """Raise CommandError for a database of another version; for the start of `migrate`."""
    _refuse(MigrationLoader(connections[using]))


def require_this_version() -> None:
    """Raise CommandError for a database of another version, or one that is not migrated."""
    loader = MigrationLoader(connections[DEFAULT])
    _refuse(loader)
    if missing := _ours(loader.disk_migrations.keys() - loader.applied_migrations.keys()):
        raise CommandError(
            f"the database has no migration {missing[0]}: run `manage.py prepare` first"
        )


def unknown_migrations() -> list[str]:
    """Return the database's migrations that this version does not have."""
    return _unknown(MigrationLoader(connections[DEFAULT]))


def _refuse(loader: MigrationLoader) -> None:
    unknown = _unknown(loader)
    if not unknown:
        return
    if _ours(loader.disk_migrations.keys() - loader.applied_migrations.keys()):
        raise CommandError(
            f"this database is of another version of Inturn, with the migration {unknown[0]}, "
            "and cannot be migrated: start with an empty one, "
            "in another INTURN_HOME or under another DATABASE_URL. "
            "To keep the configuration, export it with the version that made this database "
            "(`manage.py configuration export`), and apply it to the empty one"
        )
    raise CommandError(
        f"this database is of a newer version of Inturn, with the migration {unknown[-1]}: "
        "start that version or a later one. "
        "To go back, restore a back-up that this version made (`manage.py restore`)"
    )


def _unknown(loader: MigrationLoader) -> list[str]:
    return _ours(loader.applied_migrations.keys() - loader.disk_migrations.keys())


def _ours(migrations: set[tuple[str, str]]) -> list[str]:
    return sorted(".".join(name) for name in migrations if name[0] in OURS)
