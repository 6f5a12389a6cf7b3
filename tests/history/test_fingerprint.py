"""Checksums: PostgreSQL and Arrow compute the same, and every difference shows, in its column."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from delivery.database import connection_parameters
from delivery.history.fingerprint import TEXTS, Fingerprint, in_postgresql, of_batches, of_row
from delivery.history.schemas import ATTEMPTS, TABLES, Table
from tests.history import archived
from tests.history.archived import Row

_TYPES = {"bigint": "bigint", "int": "int", "string": "text", "binary": "bytea", "timestamp": "timestamptz"}
_ODD: dict[str, list[Any]] = {
    "bigint": [0, 1, 2**63 - 1, 2**31, 5],
    "int": [0, 1, 2**31 - 1, -1, 7],
    "string": ["", "Zoë ☃ 𝒳", "a\nb\t'\"\\", " ", "x" * 5000],
    "binary": [b"", b"\x00", bytes(range(256)) * 300, b"\xff\xfe", b"{}"],
    "timestamp": [
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=number)
        for number in (0, 1, 1_800_000_000_123_457, 4_102_444_799_999_999, 1_234_567_890_000_001)
    ],
}


def odd(table: Table) -> list[Row]:
    """Five rows of odd values, and one with null wherever it may be."""
    rows = [{column.name: _ODD[column.type][at] for column in table.columns} for at in range(5)]
    nulls = {
        column.name: None if column.is_nullable else _ODD[column.type][2] for column in table.columns[1:]
    }
    return [*rows, {table.key[0]: 77} | nulls]


def by_arrow(table: Table, rows: list[Row], *, batches: int = 1) -> Fingerprint:
    parts = [rows[at::batches] for at in range(batches)]
    return of_batches(table, [pa.RecordBatch.from_pylist(part, table.arrow) for part in parts])


def by_postgresql(table: Table, rows: list[Row]) -> Fingerprint:
    """Let PostgreSQL compute it of rows that it is given as literals."""
    names = ", ".join(table.names)
    values = sql.SQL(", ").join(
        sql.SQL("({})").format(
            sql.SQL(", ").join(
                sql.SQL("{}::{}").format(row[column.name], sql.SQL(_TYPES[column.type]))
                for column in table.columns
            )
        )
        for row in rows
    )
    select = sql.SQL("SELECT * FROM (VALUES {}) AS given ({})").format(values, sql.SQL(names))
    with psycopg.connect(make_conninfo(**connection_parameters()), autocommit=True) as connection:
        row = connection.execute(in_postgresql(table, select.as_string(connection)).encode()).fetchone()
    assert row is not None
    return of_row(table, row)


@pytest.mark.django_db
@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_postgresql_and_arrow_agree(table: Table) -> None:
    rows = odd(table)
    assert by_postgresql(table, rows) == by_arrow(table, rows)


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_however_the_rows_are_cut_and_ordered(table: Table) -> None:
    rows = odd(table)
    assert by_arrow(table, rows[::-1], batches=3) == by_arrow(table, rows)


ROWS = [archived.attempt(id, error=f"error {id}", excerpt=b"%d" % id) for id in range(1, 5)]
WHOLE = by_arrow(ATTEMPTS, ROWS)


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ({"duration_ms": 6}, ["duration_ms"]),
        ({"duration_ms": None}, ["duration_ms"]),
        ({"error": "error  1"}, [TEXTS]),
        ({"outcome": "SUCCESSerror", "error": " 1"}, [TEXTS]),
        ({"excerpt": b"1 "}, ["excerpt"]),
        ({"settled_at": archived.seconds(1.020001)}, ["settled_at"]),
    ],
)
def test_what_is_changed_shows_in_its_column(change: Row, columns: list[str]) -> None:
    changed = [ROWS[0] | change, *ROWS[1:]]
    assert WHOLE.different_from(by_arrow(ATTEMPTS, changed)) == columns


@pytest.mark.parametrize("column", ["error", "excerpt", "started_at", "message_id"])
def test_what_two_rows_have_of_each_other_shows(column: str) -> None:
    one, other, *more = ROWS
    changed = [one | {column: other[column]}, other | {column: one[column]}, *more]
    assert WHOLE.different_from(by_arrow(ATTEMPTS, changed)) == [TEXTS if column == "error" else column]


@pytest.mark.parametrize(("one", "other"), [(1, 2), (12, 13), (3, 17), (200, 500)])
def test_also_of_small_numbers(one: int, other: int) -> None:
    for id in range(1, 200):
        rows = [archived.attempt(id, duration_ms=one), archived.attempt(id + 1, duration_ms=other)]
        changed = [rows[0] | {"duration_ms": other}, rows[1] | {"duration_ms": one}]
        assert by_arrow(ATTEMPTS, rows).different_from(by_arrow(ATTEMPTS, changed)) == ["duration_ms"]


@pytest.mark.parametrize("column", ["error", "duration_ms", "started_at"])
def test_also_within_one_delivery(column: str) -> None:
    rows = [archived.attempt(7, 1, error="a"), archived.attempt(7, 2, duration_ms=6)]
    rows[1]["started_at"] = archived.seconds(9)
    one, other = rows
    changed = [one | {column: other[column]}, other | {column: one[column]}]
    expected = [TEXTS if column == "error" else column]
    assert by_arrow(ATTEMPTS, rows).different_from(by_arrow(ATTEMPTS, changed)) == expected


def test_a_row_that_is_missing_or_doubled_shows() -> None:
    assert by_arrow(ATTEMPTS, ROWS[1:]) != WHOLE
    assert by_arrow(ATTEMPTS, [*ROWS, ROWS[0]]) != WHOLE
    assert by_arrow(ATTEMPTS, [*ROWS[1:], ROWS[1]]).rows == WHOLE.rows
    assert by_arrow(ATTEMPTS, [*ROWS[1:], ROWS[1]]) != WHOLE
