"""The statements of new migrations, and squawk's objections to running them beside old code.

squawk reads the SQL that PostgreSQL gets, including that of `RunSQL`: locks, rewrites of tables,
indexes that are not built concurrently, and changes that code of the version before does not
survive. django-migration-linter looks at Django's operations of any database, and finds the last
of these only.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from subscriptions.concurrent_indexes import (
    ResumableAddIndexConcurrently,
    ResumableRemoveIndexConcurrently,
)

# The base, which the first release creates in an empty database: nobody has data that its
# migrations could hold up. All later ones are checked. After the first release this never changes.
FIRST_RELEASE = {"subscriptions": "0003_changes", "delivery": "0005_roles_and_permissions"}

SQUAWK = Path(sys.executable).with_name("squawk")
# The oldest that Inturn supports.
POSTGRESQL = "15.0"
NOT_APPLICABLE = (
    # `prepare` sets lock_timeout for all migrations, and repeats those that it ends.
    "require-lock-timeout",
    "require-statement-timeout",
    # Django records a migration in the transaction that runs it, and so never runs one twice. An
    # index is built outside of a transaction: see `ResumableAddIndexConcurrently`.
    "prefer-robust-stmts",
    # Django's types: the choice is made in the model, and is the same in old and new code.
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-text-field",
)


def new_migrations() -> list[tuple[str, str]]:
    """Return app and name of the migrations after the first release, in the order of numbers."""
    known = MigrationLoader(connection).disk_migrations
    return sorted(
        (app, name) for app, name in known if app in FIRST_RELEASE and name > FIRST_RELEASE[app]
    )


def statements(app: str, name: str) -> str:
    """Return the SQL of a migration, as Django sends it."""
    out = StringIO()
    call_command("sqlmigrate", app, name, stdout=out, no_color=True)
    return out.getvalue()


def unsafe_operations(app: str, name: str) -> Iterator[str]:
    """Yield the operations whose SQL looks harmless, and which an interruption would break."""
    migration = MigrationLoader(connection).disk_migrations[app, name]
    for operation in migration.operations:
        if isinstance(operation, AddIndexConcurrently | RemoveIndexConcurrently) and not isinstance(
            operation, ResumableAddIndexConcurrently | ResumableRemoveIndexConcurrently
        ):
            yield f"{operation.describe()}: use its Resumable… subclass"


def objections(sql: str) -> Iterator[str]:
    """Yield squawk's objections: the rule and its advice."""
    done = subprocess.run(
        [
            SQUAWK,
            *("--reporter", "json", "--pg-version", POSTGRESQL),
            *(f"--exclude={rule}" for rule in NOT_APPLICABLE),
            *("--stdin-filepath", "migration.sql"),
        ],
        input=sql,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and not done.stdout.startswith("["):
        raise RuntimeError(f"squawk failed: {done.stderr}")
    for found in json.loads(done.stdout or "[]"):
        yield f"{found['rule_name']}, line {found['line'] + 1}: {found['message']}"
