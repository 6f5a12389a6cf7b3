"""A database with unknown migrations is refused, before anything writes to it.

    unknown migrations | all of ours are applied | the database is
    none               | yes or no               | ours, or older: migrating makes it ours
    some               | yes                     | of a newer version: older code would write rows
                       |                         | that it does not understand
    some               | no                      | from before the first release, when migrations
                       |                         | were squashed

A squash may use old names again, but not for the last migration of `delivery`: a database from
before it lacks this migration, and so is not mistaken for a database of a newer version.

The fence is at the start of `prepare`, of `qcluster` and, by `/readyz`, of the web server. Running
processes go on: a new version may be started beside them while machines are replaced in turn.
"""

import pkgutil
from collections.abc import Set
from functools import cache
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

# App and name of a migration.
Migration = tuple[str, str]

OURS = ("delivery", "subscriptions")
DEFAULT = "default"


def refuse_another_version(*, using: str, **_: Any) -> None:
    """Raise CommandError for a database of another version; for the start of `migrate`."""
    _refuse(_applied(using))


def require_this_version() -> None:
    """Raise CommandError for a database of another version, or an unmigrated database."""
    applied = _applied(DEFAULT)
    _refuse(applied)
    if missing := _ours(_on_disk() - applied):
        raise CommandError(
            f"the database has no migration {missing[0]}: run `manage.py prepare` first"
        )


def unknown_migrations() -> list[str]:
    """Return the database's migrations unknown to this version."""
    return _ours(_applied(DEFAULT) - _on_disk())


def missing_migrations() -> list[str]:
    """Return this version's migrations, Django's among them, missing in the database."""
    return _names(_on_disk() - _applied(DEFAULT))


def _refuse(applied: set[Migration]) -> None:
    unknown = _ours(applied - _on_disk())
    if not unknown:
        return
    if _ours(_on_disk() - applied):
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


def _applied(using: str) -> set[Migration]:
    return set(MigrationRecorder(connections[using]).applied_migrations())


@cache
def _on_disk() -> frozenset[Migration]:
    """Return this version's migrations, found by the names of their files.

    To import them all, as Django's loader does, takes memory, never given back by a cluster and a
    web server.
    """
    return frozenset(
        (app.label, module.name)
        for app in apps.get_app_configs()
        for module in pkgutil.iter_modules([str(Path(app.path) / "migrations")])
        if not module.ispkg and module.name[0] not in "_~"
    )


def _ours(migrations: Set[Migration]) -> list[str]:
    return _names({migration for migration in migrations if migration[0] in OURS})


def _names(migrations: Set[Migration]) -> list[str]:
    return sorted(".".join(migration) for migration in migrations)
