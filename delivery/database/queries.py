"""Execution of the packages' named statements on Django's connection."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.errors import QueryCanceled
from psycopg.rows import RowFactory, dict_row, tuple_row
from psycopg.types.array import ListBinaryDumper

from delivery.database.statements import numbered, statement

# PostgreSQL 18 crashes when a row was changed while a statement waits to lock it, and another part
# of the statement chooses partitions by values found during execution: rechecking the changed row
# destroys the values of this choice. So a statement that locks or changes rows, and joins a
# partitioned table, has this line and reads all partitions; a statement executed often reads
# through a function instead, which has a separate plan.
WITHOUT_PARTITION_PRUNING = "-- Without partition pruning: see `delivery.database`.\n"


Row = TypeVar("Row")


class TimeUpError(Exception):
    """A statement took longer than allowed, and the database cancelled it."""


def execute_statement(name: str, parameters: Mapping[str, Any]) -> None:
    """Execute a named statement on Django's connection for the effect.

    A percent sign in the statement is doubled.
    """
    with _executed(name, parameters):
        pass


def rows(name: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Execute a statement as `execute_statement` does, and return all rows."""
    with _executed(name, parameters) as cursor:
        result: list[tuple[Any, ...]] = cursor.fetchall()
    return result


def row(name: str, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
    """Execute a statement that returns exactly one row."""
    (only,) = rows(name, parameters)
    return only


def named_rows(name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Execute a statement as `execute_statement` does; return the rows, each by column names."""
    with _executed(name, parameters) as cursor:
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def named_row(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Execute a statement that returns exactly one row, and return it by column names."""
    (only,) = named_rows(name, parameters)
    return only


@contextmanager
def _executed(name: str, parameters: Mapping[str, Any]) -> Iterator[CursorWrapper]:
    text = statement(name)
    with connection.cursor() as cursor:
        if WITHOUT_PARTITION_PRUNING in text:
            cursor.execute("SET LOCAL enable_partition_pruning = off")
        cursor.execute(text, parameters)
        yield cursor
        if WITHOUT_PARTITION_PRUNING in text:
            cursor.execute("SET LOCAL enable_partition_pruning = DEFAULT")


def first_row(name: str, parameters: Mapping[str, object]) -> tuple[Any, ...] | None:
    """Execute a named statement on Django's connection and return the first row.

    It uses psycopg's own cursor, whose parameters the server binds: Django's would write bodies
    into the statement as hexadecimal text.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors:
        cursor = psycopg.Cursor(connection.connection, row_factory=tuple_row)
        return cursor.execute(statement(name).encode(), parameters).fetchone()


def planned_rows(name: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
    """Execute a named statement on Django's connection with a prepared plan, and return all rows.

    It is for long statements executed often: planning them took longer than executing them.
    """
    return _planned(name, parameters, tuple_row)


def planned_named_rows(name: str, parameters: Mapping[str, object]) -> list[dict[str, Any]]:
    """Execute a statement as `planned_rows` does; return the rows, each by column names."""
    return _planned(name, parameters, dict_row)


def _planned(
    name: str, parameters: Mapping[str, object], row_factory: RowFactory[Row]
) -> list[Row]:
    # As text and by name, psycopg parses statement and rows again each time, which takes 1.5 times
    # as long.
    text, names = numbered(name)
    values = [parameters[parameter] for parameter in names]
    if connection.queries_logged:
        # Tests count the statements of a page by Django's log, which psycopg's cursor bypasses.
        connection.queries_log.append({"sql": text.decode(), "time": "0"})
    with connection.wrap_database_errors:
        connection.ensure_connection()
        # Django prepares no statements. Neither does this connection, except on request.
        connection.connection.prepare_threshold = sys.maxsize
        cursor = psycopg.RawCursor(connection.connection, row_factory=row_factory)
        # As text, a body would be written as hexadecimal digits, and each element searched for
        # characters to escape.
        cursor.adapters.register_dumper(list, ListBinaryDumper)
        return cursor.execute(text, values, prepare=True, binary=True).fetchall()


def is_true(name: str, parameters: Mapping[str, object] | None = None) -> bool:
    """Execute a statement with a single boolean as result, with a prepared plan."""
    ((found,),) = planned_rows(name, parameters or {})
    return bool(found)


def array(values: Iterable[float | None]) -> str:
    """Return numbers or booleans as an array literal of PostgreSQL, for a parameter with a cast.

    For a list, psycopg would choose the type by the largest number, and each type would be prepared
    and planned separately.
    """
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


@contextmanager
def reading_one_moment() -> Iterator[None]:
    """Make all statements on Django's connection read the database as of one moment.

    Writes fail. In an open transaction, only this holds.
    """
    # The end of a savepoint restores the old value.
    settings = "SET LOCAL transaction_read_only = on"
    if not connection.in_atomic_block:
        settings = f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; {settings}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(settings)
        yield


@contextmanager
def statement_time_limit(seconds: float) -> Iterator[None]:
    """Limit the duration of each statement on Django's connection, in a separate transaction.

    Raise TimeUpError when the limit is exceeded.
    """
    milliseconds = max(1, round(1000 * seconds))
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {milliseconds}")
            yield
            # A savepoint would leave the time-out set in the surrounding transaction.
            cursor.execute("SET LOCAL statement_timeout = 0")
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TimeUpError from None
        raise


@contextmanager
def preferring_bitmap_scans() -> Iterator[None]:
    """Make each statement on Django's connection find rows in indexes before it reads any.

    Use it inside `statement_time_limit`. Pages outside memory are then read many at a time:
    PostgreSQL reads ahead for a bitmap scan, but not for an index scan.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_indexscan = off")
        yield
        cursor.execute("SET LOCAL enable_indexscan = DEFAULT")


@contextmanager
def preferring_hash_joins() -> Iterator[None]:
    """Make each statement on Django's connection read whole tables and join by hashing.

    Use it in a transaction. It disables nested loops: PostgreSQL expects few rows in a partition
    without statistics, and would read it again for each of many.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; "
            "SET LOCAL enable_nestloop = off"
        )
        yield
        cursor.execute(
            "SET LOCAL enable_seqscan = DEFAULT; SET LOCAL enable_hashjoin = DEFAULT; "
            "SET LOCAL enable_nestloop = DEFAULT"
        )
