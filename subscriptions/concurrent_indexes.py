"""Migrations which build and remove indexes while old and new code write to the table.

Such a statement runs outside of a transaction, in a separate migration with `atomic = False`. It
waits for all older transactions, and disturbs nobody meanwhile, so it is exempt from `prepare`'s
`lock_timeout`. An interrupted build leaves an invalid index behind, which the next attempt
replaces. PostgreSQL does not build an index of a partitioned table in this way: it is built on each
partition, and attached.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import ProgrammingError
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from psycopg.errors import UndefinedTable

_IS_VALID = """
    SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s))
"""

_PARTITIONS_WITHOUT = """
    SELECT relation.relname::text
    FROM pg_inherits partition
    JOIN pg_class relation ON relation.oid = partition.inhrelid
    WHERE partition.inhparent = to_regclass(quote_ident(%s)) AND NOT EXISTS (
        SELECT
        FROM pg_inherits attached
        JOIN pg_index index ON index.indexrelid = attached.inhrelid
        WHERE attached.inhparent = to_regclass(quote_ident(%s))
            AND index.indrelid = relation.oid
    )
    ORDER BY
        relation.oid = (
            SELECT partdefid FROM pg_partitioned_table WHERE partrelid = partition.inhparent
        ),
        relation.oid
"""


class _Printable:
    """Allows `sqlmigrate`, which executes nothing, inside of a transaction, as tests have one."""

    def _ensure_not_in_transaction(self, schema_editor: BaseDatabaseSchemaEditor) -> None:
        if not schema_editor.collect_sql:
            # Each subclass is an operation of Django.
            super()._ensure_not_in_transaction(schema_editor)  # type: ignore[misc]


class ResumableAddIndexConcurrently(_Printable, AddIndexConcurrently):
    """Builds the index; an unfinished index of the same name is dropped first.

    A finished index is kept: the server may have finished it after the migration was killed.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any
    ) -> None:
        with _without_lock_timeout(schema_editor):
            is_valid = _is_valid(schema_editor, self.index.name)
            if is_valid:
                return
            if is_valid is False:
                name = schema_editor.quote_name(self.index.name)
                schema_editor.execute(f"DROP INDEX CONCURRENTLY {name}")
            super().database_forwards(app_label, schema_editor, *states)


class ResumableRemoveIndexConcurrently(_Printable, RemoveIndexConcurrently):
    """Removes the index; it may be repeated after it was interrupted."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any
    ) -> None:
        with _without_lock_timeout(schema_editor):
            super().database_forwards(app_label, schema_editor, *states)


class AddPartitionedIndexConcurrently(Operation):
    """Builds an index on each partition of a table not created by Django.

    `definition` is the part of CREATE INDEX after the name of the table. It may be repeated after
    it was interrupted. A partition created meanwhile gets the index at once, and a partition
    dropped meanwhile is left out.
    """

    reversible = True

    def __init__(self, *, table: str, name: str, definition: str) -> None:
        self.table = table
        self.name = name
        self.definition = definition

    def describe(self) -> str:
        return f"Build the index {self.name} on each partition of {self.table}"

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Change nothing: the models do not know the table."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any
    ) -> None:
        name, table = (schema_editor.quote_name(each) for each in (self.name, self.table))
        # It has no rows.
        schema_editor.execute(
            f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {table} {self.definition}"
        )
        # The default partition is the last, because the table's index becomes valid when the last
        # partition is attached, and nobody drops the default partition.
        for partition in self._partitions_without(schema_editor):
            with _unless_dropped(schema_editor, partition):
                self._build_on(schema_editor, partition)

    def _build_on(self, schema_editor: BaseDatabaseSchemaEditor, partition: str) -> None:
        index = f"{partition}_{self.name}"
        of_partition = schema_editor.quote_name(index)
        with _without_lock_timeout(schema_editor):
            if _is_valid(schema_editor, index) is False:
                schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {of_partition}")
            schema_editor.execute(
                f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {of_partition} "
                f"ON {schema_editor.quote_name(partition)} {self.definition}"
            )
        # Locks out the readers of the partition for a moment.
        name = schema_editor.quote_name(self.name)
        schema_editor.execute(f"ALTER INDEX {name} ATTACH PARTITION {of_partition}")

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any
    ) -> None:
        schema_editor.execute(f"DROP INDEX IF EXISTS {schema_editor.quote_name(self.name)}")

    def _partitions_without(self, schema_editor: BaseDatabaseSchemaEditor) -> list[str]:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(_PARTITIONS_WITHOUT, [self.table, self.name])
            return [name for (name,) in cursor.fetchall()]


def _is_valid(schema_editor: BaseDatabaseSchemaEditor, name: str) -> bool | None:
    """Return whether the index is finished; None if there is none."""
    if schema_editor.collect_sql:
        return None
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_IS_VALID, [name])
        row = cursor.fetchone()
    return None if row is None else bool(row[0])


@contextmanager
def _unless_dropped(schema_editor: BaseDatabaseSchemaEditor, partition: str) -> Iterator[None]:
    """Ignore a missing table or index if the partition no longer exists."""
    try:
        yield
    except ProgrammingError as error:
        if not isinstance(error.__cause__, UndefinedTable):
            raise
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass(quote_ident(%s))", [partition])
            if cursor.fetchone() != (None,):
                raise


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
