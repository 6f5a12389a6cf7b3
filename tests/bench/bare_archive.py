"""`python -m tests.bench.bare_archive FOLDER`: the tables copied through Arrow into Parquet.

It is a single process, which copies whole tables, without checks, days or order. It does not import
Django: standard input has the database's connection string.
"""

import sys
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv, parquet

TABLES = ("delivery_message", "delivery_delivery", "delivery_attempt")
BLOCK_BYTES = 16 * 2**20

_TYPES = {
    "bool": pa.bool_(),
    **dict.fromkeys(("int2", "int4", "int8"), pa.int64()),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}


class _Copied:
    """A COPY as a file for Arrow."""

    closed = False

    def __init__(self, copy: psycopg.Copy) -> None:
        self._rows = iter(copy)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def read(self, count: int) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while length < count:
            row = next(self._rows, None)
            if row is None:
                break
            parts.append(bytes(row))
            length += len(parts[-1])
        found = b"".join(parts)
        self._rest = found[count:]
        return found[:count]


def archive(connection: psycopg.Connection[Any], table: str, folder: Path) -> None:
    name = sql.Identifier(table)
    described = (
        connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(name)).description or []
    )
    types = {
        column.name: _TYPES.get(connection.adapters.types[column.type_code].name, pa.string())
        for column in described
    }
    # A partitioned table cannot be copied by name.
    copy = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT csv, HEADER)").format(name)
    with connection.cursor() as cursor, cursor.copy(copy) as copied:
        reader = csv.open_csv(
            _Copied(copied),
            csv.ReadOptions(block_size=BLOCK_BYTES),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        )
        with parquet.ParquetWriter(
            folder / f"{table}.parquet", reader.schema, compression="zstd"
        ) as writer:
            for batch in reader:
                writer.write_batch(batch)


if __name__ == "__main__":
    with psycopg.connect(sys.stdin.read(), options="-c TimeZone=UTC") as connection:
        for table in TABLES:
            archive(connection, table, Path(sys.argv[1]))
