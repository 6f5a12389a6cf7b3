"""Restores the database to its state after the migrations, for tests that commit transactions.

Django would empty all tables, and restore rows that migrations wrote, such as the built-in
policies, only for the next test of that kind: other tests would have to run before it. This module
empties only changed tables, so that all tests find the same state; ranges of messages that a test
created are dropped with their partitions.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection, transaction
from psycopg import sql

_TABLES = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        AND relname NOT IN ('django_migrations', 'delivery_messagerange')
    ORDER BY relname
"""
# Generated columns accept no values.
_COLUMNS = """
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
_HAS_ROWS = "SELECT {name}, EXISTS (SELECT FROM {table})::text FROM (SELECT) AS one"
_DIGEST = "SELECT {name}, md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t"
_RANGES = "SELECT first_id, until_id FROM delivery_messagerange"


@dataclass(frozen=True, slots=True)
class Migrated:
    """The state after the migrations.

    It has all tables, the rows of non-empty ones with a digest, the ranges and the next message's
    id.
    """

    tables: tuple[str, ...]
    digests: dict[str, str | None]
    rows: dict[str, bytes]
    ranges: set[tuple[int, int]]
    next_message: int


def remember() -> Migrated:
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        tables = tuple(name for (name,) in cursor.fetchall())
        filled = [name for name, found in _reported(_HAS_ROWS, tables).items() if found == "true"]
        cursor.execute(_RANGES)
        ranges = set(cursor.fetchall())
        cursor.execute("SELECT last_value FROM delivery_message_id_seq")
        ((next_message,),) = cursor.fetchall()
    rows = {name: _copied(name) for name in filled}
    return Migrated(tables, _reported(_DIGEST, filled), rows, ranges, next_message)


def put_back(migrated: Migrated) -> None:
    with transaction.atomic():
        empty = [name for name in migrated.tables if name not in migrated.digests]
        dirty = [name for name, found in _reported(_HAS_ROWS, empty).items() if found == "true"]
        dirty += _changed(migrated)
        if dirty:
            # CASCADE also empties the tables that refer to them, and some of those have rows of
            # migrations.
            _execute(
                sql.SQL("TRUNCATE {} CASCADE").format(
                    sql.SQL(", ").join(map(sql.Identifier, dirty))
                )
            )
            _fill(migrated, _changed(migrated))
        _put_back_ranges(migrated)


def _changed(migrated: Migrated) -> list[str]:
    found = _reported(_DIGEST, migrated.digests)
    return [name for name, digest in migrated.digests.items() if found[name] != digest]


def _fill(migrated: Migrated, names: Iterable[str]) -> None:
    """Write the rows of migrations without triggers, which would change them.

    Foreign keys are checked.
    """
    names = list(names)
    for name in names:
        table = sql.Identifier(name)
        _execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(table))
        columns = sql.SQL(_columns(name))
        copying = sql.SQL("COPY {} ({}) FROM STDIN").format(table, columns)
        with connection.cursor() as cursor, cursor.copy(copying) as copy:
            copy.write(migrated.rows[name])
    _execute(sql.SQL("SET CONSTRAINTS ALL IMMEDIATE"))
    for name in names:
        _execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(sql.Identifier(name)))


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


def _reported(statement: str, names: Iterable[str]) -> dict[str, str | None]:
    parts = [
        sql.SQL(statement).format(name=sql.Literal(name), table=sql.Identifier(name))
        for name in names
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(" UNION ALL ").join(parts))
        return dict(cursor.fetchall())


def _copied(name: str) -> bytes:
    copying = sql.SQL("COPY {} ({}) TO STDOUT").format(
        sql.Identifier(name), sql.SQL(_columns(name))
    )
    with connection.cursor() as cursor, cursor.copy(copying) as copy:
        return b"".join(bytes(part) for part in copy)


def _columns(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, [name])
        ((columns,),) = cursor.fetchall()
    return str(columns)


def _execute(statement: sql.Composed | sql.SQL) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
