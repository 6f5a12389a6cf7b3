"""Restores the database to the state after the migrations, for tests with committed transactions.

Django would empty all tables, and restore rows of migrations, such as the built-in policies, only
for the next test of the kind: other tests would have to run before it. This module empties only
changed tables, so all tests find the same state; ranges of messages created by a test are dropped
with their partitions.

A function of the database finds the changed tables: it is planned once a session. Few rows are
deleted, because after a TRUNCATE all sessions read the catalog and plan their statements again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from psycopg import sql

# In a table with more rows, TRUNCATE takes less time.
MOST_DELETED = 200
# Triggers write it when other tables are emptied.
LAST = "subscriptions_configurationtransaction"

_TABLES = """
    SELECT relname::text, EXISTS (
        SELECT FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal
    )
    FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        AND relname NOT IN ('django_migrations', 'delivery_messagerange')
    ORDER BY relname
"""
# Generated columns accept no values.
_COLUMNS = """
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
_DIGEST = "SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t"
_RANGES = "SELECT first_id, until_id FROM delivery_messagerange"
_CHANGED = """
    DROP SCHEMA IF EXISTS migrated CASCADE;
    CREATE SCHEMA migrated;
    CREATE FUNCTION migrated.changed_tables(OUT name text, OUT rows bigint) RETURNS SETOF record
    LANGUAGE plpgsql AS $$
    BEGIN {statements}
    END $$
"""
_COUNT = """
    SELECT count(*) INTO rows FROM (SELECT FROM {table} LIMIT {limit}) AS one;
    IF rows > 0 THEN name := {name}; RETURN NEXT; END IF;
"""
_COMPARE = """
    IF ({digest}) IS DISTINCT FROM {expected} THEN name := {name}; rows := 0; RETURN NEXT; END IF;
"""
_KEEP = "CREATE TABLE migrated.{table} AS SELECT {columns} FROM {table}"
_DELETE_OTHERS = """
    DELETE FROM {table}
    WHERE ROW({columns})::text NOT IN (SELECT ROW({columns})::text FROM migrated.{table})
"""
_MISSING = """
    SELECT {columns} FROM migrated.{table}
    WHERE ROW({columns})::text NOT IN (SELECT ROW({columns})::text FROM {table})
"""
_INSERT_MISSING = "INSERT INTO {table} ({columns})" + _MISSING


@dataclass(frozen=True, slots=True)
class Migrated:
    """The state after the migrations.

    It has all tables, and whether they have triggers; the digests of non-empty tables, whose rows
    are in the schema `migrated`; the ranges and the next message's id.
    """

    tables: dict[str, bool]
    digests: dict[str, str]
    ranges: set[tuple[int, int]]
    next_message: int


def remember() -> Migrated:
    # `put_back` empties it, too: a migration may have changed a row of a configured table.
    _execute(_deletion(LAST))
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        tables: dict[str, bool] = dict(cursor.fetchall())
        digests = {}
        for name in tables:
            cursor.execute(sql.SQL(_DIGEST).format(table=sql.Identifier(name)))
            ((digest,),) = cursor.fetchall()
            if digest is not None:
                digests[name] = digest
        cursor.execute(_RANGES)
        ranges = set(cursor.fetchall())
        cursor.execute("SELECT last_value FROM delivery_message_id_seq")
        ((next_message,),) = cursor.fetchall()
    migrated = Migrated(tables, digests, ranges, next_message)
    _keep(migrated)
    return migrated


def put_back(migrated: Migrated) -> None:
    with transaction.atomic():
        changed = _changed()
        many = [name for name, rows in changed.items() if rows > MOST_DELETED]
        if many:
            # CASCADE also empties the referring tables, and some of those have rows of migrations.
            _execute(
                sql.SQL("TRUNCATE {} CASCADE").format(sql.SQL(", ").join(map(sql.Identifier, many)))
            )
            changed = _changed()
        if changed:
            _empty(migrated, [name for name in changed if name not in migrated.digests])
            _restore(migrated, [name for name in changed if name in migrated.digests])
            _execute(_deletion(LAST) + sql.SQL("; SET CONSTRAINTS ALL IMMEDIATE"))
        _put_back_ranges(migrated)


def _keep(migrated: Migrated) -> None:
    """Keep the rows of migrations, and create the function to find tables with other rows."""
    statements = [
        sql.SQL(_COMPARE).format(
            digest=sql.SQL(_DIGEST).format(table=sql.Identifier(name)),
            expected=sql.Literal(migrated.digests[name]),
            name=sql.Literal(name),
        )
        if name in migrated.digests
        else sql.SQL(_COUNT).format(
            table=sql.Identifier(name),
            limit=sql.Literal(MOST_DELETED + 1),
            name=sql.Literal(name),
        )
        for name in migrated.tables
    ]
    _execute(sql.SQL(_CHANGED).format(statements=sql.SQL("").join(statements)))
    for name in migrated.digests:
        _execute(_with_columns(_KEEP, name))


def _changed() -> dict[str, int]:
    """Return the changed tables with their rows, counted no further than needed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, rows FROM migrated.changed_tables()")
        return dict(cursor.fetchall())


def _empty(migrated: Migrated, names: Iterable[str]) -> None:
    # A trigger refuses to delete a subscription with deliveries, and those have no triggers.
    ordered = sorted(names, key=lambda name: (migrated.tables[name], name))
    if ordered:
        _execute(sql.SQL("; ").join(map(_deletion, ordered)))


def _deletion(name: str) -> sql.Composed:
    return sql.SQL("DELETE FROM {}").format(sql.Identifier(name))


def _restore(migrated: Migrated, names: Sequence[str]) -> None:
    """Write the rows of migrations without triggers, which would change them.

    Foreign keys are checked.
    """
    for name in names:
        _execute(_with_columns(_DELETE_OTHERS, name))
    missing = [name for name in names if _finds(_with_columns(_MISSING, name))]
    for name in missing:
        if not migrated.tables[name]:
            _execute(_with_columns(_INSERT_MISSING, name))
    for name in missing:
        if migrated.tables[name]:
            table = sql.Identifier(name)
            # A table whose keys are still to be checked cannot be altered. The rows of migrations
            # in the tables above refer to none of these.
            _execute(sql.SQL("SET CONSTRAINTS ALL IMMEDIATE"))
            _execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(table))
            _execute(_with_columns(_INSERT_MISSING, name))
            _execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(table))


def _put_back_ranges(migrated: Migrated) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_RANGES)
        found = set(cursor.fetchall())
        for first, _ in found - migrated.ranges:
            cursor.execute("SELECT delivery_drop_range(%s)", [first])
        for first, until in migrated.ranges - found:
            cursor.execute("SELECT delivery_make_range(%s, %s)", [first, until])
        if found != migrated.ranges:
            cursor.execute(
                "SELECT setval('delivery_message_id_seq', %s, false)", [migrated.next_message]
            )


def _with_columns(statement: str, name: str) -> sql.Composed:
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, [name])
        ((columns,),) = cursor.fetchall()
    return sql.SQL(statement).format(table=sql.Identifier(name), columns=sql.SQL(columns))


def _finds(query: sql.Composed) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone() is not None


def _execute(statement: sql.Composed | sql.SQL) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
