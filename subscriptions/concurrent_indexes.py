"""Migrations that build and remove indexes while old and new code write to the table.

Such a statement runs outside of a transaction, in a migration of its own with `atomic = False`. It
waits for all older transactions, and disturbs nobody meanwhile, so it is exempt from the
`lock_timeout` that `prepare` sets. A build that is interrupted leaves an invalid index behind,
which the next attempt replaces. PostgreSQL does not build an index of a partitioned table in this
way: build one on each partition, and attach them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_IS_INVALID = """
    SELECT FROM pg_index
    WHERE indexrelid = to_regclass(quote_ident(%s)) AND NOT indisvalid
"""


class AddIndexBesideWriters(AddIndexConcurrently):
    """Builds the index; one of that name that was left unfinished is dropped first."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any
    ) -> None:
        with _without_lock_timeout(schema_editor):
            if _is_unfinished(schema_editor, self.index.name):
                name = schema_editor.quote_name(self.index.name)
                schema_editor.execute(f"DROP INDEX CONCURRENTLY {name}")
            super().database_forwards(app_label, schema_editor, *states)


class RemoveIndexBesideWriters(RemoveIndexConcurrently):
    """Removes the index; it may be repeated after it was interrupted."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any
    ) -> None:
        with _without_lock_timeout(schema_editor):
            super().database_forwards(app_label, schema_editor, *states)


def _is_unfinished(schema_editor: BaseDatabaseSchemaEditor, name: str) -> bool:
    if schema_editor.collect_sql:
        return False
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_IS_INVALID, [name])
        return cursor.fetchone() is not None


@contextmanager
def _without_lock_timeout(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
    if schema_editor.collect_sql:
        yield
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        before = cursor.fetchone()[0]
        cursor.execute("SET lock_timeout = 0")
        try:
            yield
        finally:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [before])
