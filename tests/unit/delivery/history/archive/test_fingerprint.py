"""Checksums: PostgreSQL and Arrow compute the same, and every difference shows."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from delivery.database.connections import connection_parameters
from delivery.history.archive.fingerprint import (
    Fingerprint,
    fingerprint_of,
    fingerprint_of_batches,
    fingerprint_sql,
    whole_times_sql,
)
from delivery.history.postgres.sent_statements import USUAL
from delivery.history.schemas import ATTEMPTS, DELIVERIES, TABLES, Table
from tests.support.quick import STRIDE
from tests.unit.delivery.history import archived
from tests.unit.delivery.history.archived import Row

_TYPES = {
    "bigint": "bigint",
    "int": "int",
    "string": "text",
    "binary": "bytea",
    "timestamp": "timestamptz",
}
_ODD: dict[str, list[Any]] = {
    "bigint": [0, 1, 2**63 - 1, -(2**40), 2**31],
    "int": [0, 1, 2**31 - 1, -1, -(2**31)],
    "string": ["", "Zoë ☃ 𝒳", "a\nb\t'\"\\", " ", "x" * 5000],
    "binary": [b"", b"\x00", bytes(range(256)) * 300, b"\xff\xfe", b"{}"],
    "timestamp": [
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=number)
        for number in (0, 1, 1_800_000_000_123_457, 4_102_444_799_999_999, 1_234_567_890_000_001)
    ],
}


def odd_rows(table: Table) -> list[Row]:
    """Return five rows of odd values, and one with null wherever it is allowed."""
    rows = [{column.name: _ODD[column.type][at] for column in table.columns} for at in range(5)]
    nulls = {
        column.name: None if column.is_nullable else _ODD[column.type][2]
        for column in table.columns[1:]
    }
    return [*rows, {table.key[0]: 77} | nulls]


def by_arrow(table: Table, rows: list[Row], *, batches: int = 1) -> Fingerprint:
    parts = [rows[at::batches] for at in range(batches)]
    return fingerprint_of_batches(
        table.columns, [pa.RecordBatch.from_pylist(part, table.arrow) for part in parts]
    )


def by_postgresql(
    table: Table, rows: list[Row], *, usual: Mapping[str, str | None] | None = None
) -> Fingerprint:
    """Return PostgreSQL's result for rows given as literals."""
    names = ", ".join(table.names)
    values = sql.SQL(", ").join(
        sql.SQL("({})").format(
            sql.SQL(", ").join(
                sql.SQL("({})::{}").format(row[column.name], sql.SQL(_TYPES[column.type]))
                for column in table.columns
            )
        )
        for row in rows
    )
    checksum = sql.SQL(fingerprint_sql(table.columns, usual=usual))
    whole = sql.SQL(", ".join(["*", *whole_times_sql(table.columns)]))
    select = sql.SQL("SELECT {} FROM (SELECT {} FROM (VALUES {}) AS found ({})) AS found").format(
        checksum, whole, values, sql.SQL(names)
    )
    with psycopg.connect(make_conninfo(**connection_parameters()), autocommit=True) as connection:
        sent = [row[0] for row in connection.execute(select).fetchall()]
    return fingerprint_of(pa.array(sent, pa.int64()))


@pytest.mark.django_db
@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_postgresql_and_arrow_agree(table: Table) -> None:
    rows = odd_rows(table)
    assert by_postgresql(table, rows) == by_arrow(table, rows)


@pytest.mark.django_db
def test_usual_texts_have_the_same_checksum() -> None:
    rows = [
        archived.delivery(1),
        archived.delivery(2, output_sha256="0" * 64),
        archived.delivery(3, reason="busy"),
    ]
    texts = [column.name for column in DELIVERIES.columns if column.type == "string"]
    usual = {name: rows[0][name] for name in texts}
    assert usual.items() >= USUAL.items()
    assert by_postgresql(DELIVERIES, rows, usual=usual) == by_arrow(DELIVERIES, rows)


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_however_the_rows_are_cut_and_ordered(table: Table) -> None:
    rows = odd_rows(table)
    assert by_arrow(table, rows[::-1], batches=3) == by_arrow(table, rows)


ROWS = [archived.attempt(id, error=f"error {id}", excerpt=b"%d" % id) for id in range(1, 5)]
WHOLE = by_arrow(ATTEMPTS, ROWS)


@pytest.mark.parametrize(
    "change",
    [
        {"duration_ms": 6},
        {"duration_ms": None},
        {"duration_ms": -1},
        {"error": "error  1"},
        {"outcome": "SUCCESSerror", "error": " 1"},
        {"excerpt": b"1 "},
        {"settled_at": archived.seconds(1.020001)},
        {"started_at": archived.seconds(1.02), "settled_at": archived.seconds(1)},
    ],
)
def test_a_changed_value_changes_the_fingerprint(change: Row) -> None:
    changed = [ROWS[0] | change, *ROWS[1:]]
    assert by_arrow(ATTEMPTS, changed) != WHOLE


@pytest.mark.parametrize("column", ["error", "excerpt", "started_at", "message_id"])
def test_values_swapped_between_rows_change_the_fingerprint(column: str) -> None:
    first, other, *more = ROWS
    changed = [first | {column: other[column]}, other | {column: first[column]}, *more]
    assert by_arrow(ATTEMPTS, changed) != WHOLE


@pytest.mark.parametrize(("first", "other"), [(1, 2), (12, 13), (3, 17), (200, 500)])
def test_also_of_small_numbers(first: int, other: int) -> None:
    for id in range(1, 200, STRIDE):
        rows = [
            archived.attempt(id, duration_ms=first),
            archived.attempt(id + 1, duration_ms=other),
        ]
        changed = [rows[0] | {"duration_ms": other}, rows[1] | {"duration_ms": first}]
        assert by_arrow(ATTEMPTS, rows) != by_arrow(ATTEMPTS, changed)


@pytest.mark.parametrize("column", ["error", "duration_ms", "started_at"])
def test_also_within_one_delivery(column: str) -> None:
    rows = [archived.attempt(7, 1, error="a"), archived.attempt(7, 2, duration_ms=6)]
    rows[1]["started_at"] = archived.seconds(9)
    first, other = rows
    changed = [first | {column: other[column]}, other | {column: first[column]}]
    assert by_arrow(ATTEMPTS, rows) != by_arrow(ATTEMPTS, changed)


def test_a_row_that_is_missing_or_doubled_shows() -> None:
    assert by_arrow(ATTEMPTS, ROWS[1:]) != WHOLE
    assert by_arrow(ATTEMPTS, [*ROWS, ROWS[0]]) != WHOLE
    assert by_arrow(ATTEMPTS, [*ROWS[1:], ROWS[1]]).rows == WHOLE.rows
    assert by_arrow(ATTEMPTS, [*ROWS[1:], ROWS[1]]) != WHOLE


def close_rows(table: Table) -> list[Row]:
    """Return rows of two messages with 200 subscribers each, settled together.

    Their numbers are close, and grow together.
    """
    rows: list[Row] = []
    for number in range(400):
        message, place = divmod(number, 200)
        id = 1_000_100 + number
        given = {
            "id": id,
            "message_id": 7_000 + message,
            "subscription_id": place,
            "delivery_id": id,
        }
        given |= {"number": 1, "attempts": 1, "lane_id": place, "subscriber_id": place}
        given |= {"transaction_id": 9_000 + message, "seen_before": 9_000 + message}
        times = dict.fromkeys(
            ("settled_at", "published_at", "started_at", "at"), archived.seconds(message)
        )
        rows.append({column.name: (given | times).get(column.name) for column in table.columns})
    return rows


@pytest.mark.parametrize("part", ["columns", "bare"])
@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_no_two_neighbours_have_the_same(table: Table, part: str) -> None:
    rows = pa.RecordBatch.from_pylist(close_rows(table), table.arrow)
    found = {
        fingerprint_of_batches(getattr(table, part), [rows.slice(place, 1)]).checksum
        for place in range(rows.num_rows)
    }
    assert len(found) == rows.num_rows
