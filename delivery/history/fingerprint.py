"""Counts and checksums of rows, computed alike by PostgreSQL and by Spark: what is the same has the same.

Of each row the MD5 of all its columns written as text, of that the first 60 bits, and of those the sum over all rows: it tells a row that is
missing, doubled or different in any column, whatever the order. It guards against faults, not against forgers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delivery.history.schemas import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Between columns, and for null: neither is in a text of PostgreSQL.
_HEX_DIGITS = 15

_POSTGRESQL = {
    "bigint": "{}::text",
    "int": "{}::text",
    "string": "{}",
    "binary": "md5({})",
    "timestamp": "(extract(epoch FROM {}) * 1000000)::bigint::text",
}
_SPARK = {
    "bigint": "cast({} AS string)",
    "int": "cast({} AS string)",
    "string": "{}",
    "binary": "md5({})",
    "timestamp": "cast(unix_micros({}) AS string)",
}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many rows, their checksum, and the least and the greatest of the first column of their key."""

    rows: int
    checksum: int
    first_id: int | None = None
    last_id: int | None = None


def in_postgresql(table: Table, select: str) -> str:
    """Return a statement that computes the fingerprint of the rows that `select` gives."""
    row = f"md5(concat_ws(chr(1), {_columns(table, _POSTGRESQL, null='chr(2)')}))"
    bits = f"('x' || substr({row}, 1, {_HEX_DIGITS}))::bit({4 * _HEX_DIGITS})::bigint"
    id = table.key[0]
    return f"SELECT count(*), coalesce(sum({bits}), 0), min({id}), max({id}) FROM ({select}) AS row"  # noqa: S608 - ours


def in_spark(table: Table, frame: "DataFrame") -> Fingerprint:
    row = f"md5(cast(concat_ws(char(1), {_columns(table, _SPARK, null='char(2)')}) AS binary))"
    bits = f"cast(conv(substring({row}, 1, {_HEX_DIGITS}), 16, 10) AS decimal(20, 0))"
    id = table.key[0]
    found = frame.selectExpr(
        "count(*) AS rows", f"sum({bits}) AS checksum", f"min({id})", f"max({id})"
    ).first()
    assert found is not None
    return Fingerprint(found[0], int(found[1] or 0), found[2], found[3])


def _columns(table: Table, by_type: Mapping[str, str], *, null: str) -> str:
    return ", ".join(
        f"coalesce({by_type[column.type].format(column.name)}, {null})" for column in table.columns
    )


def of_row(row: tuple[Any, ...]) -> Fingerprint:
    return Fingerprint(row[0], int(row[1]), row[2], row[3])
