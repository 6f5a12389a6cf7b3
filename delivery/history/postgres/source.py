"""PostgreSQL as a source: the archive's tables in ranges of ids, in an exported snapshot.

A reader yields a piece as Arrow batches: by ADBC, whose driver builds them from the server's binary
COPY; without this driver, by psycopg's COPY, at half the speed. The workers of an export write the
batches as they arrive (see `extract`).

A Python Data Source makes them a Spark frame, each piece read by a worker, with comparisons pushed
down into the statement: for many unarchived rows (see `unarchived_rows`).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Self

import psycopg
import pyarrow as pa
from psycopg import sql
from pyspark.sql import datasource as spark

from delivery.database.session_settings import SESSION
from delivery.database.statements import statement
from delivery.history.schemas import ATTEMPTS, BY_NAME, Table, arrow_schema

FORMAT = "inturn"
# Ids have 63 bits.
ALL_IDS = (0, 2**63 - 1)
# Each piece is sorted in memory.
_SORTING = "64MB"
_BATCH_ROWS, _BATCH_BYTES = 5_000, 16 * 2**20

_STATEMENTS = {
    "messages": "archive_messages",
    "deliveries": "archive_deliveries",
    "attempts": "archive_attempts",
    "journal": "archive_journal",
}
_OPERATORS: Mapping[type[spark.Filter], str] = {
    spark.EqualTo: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}
_LITERALS = (bool, int, str, Decimal, datetime, date)

# Executes a statement and yields the rows, with columns of these types.
Read = Callable[[str, pa.Schema], Generator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows of a table of the archive: of an interval, with ids from `first` to before `last`."""

    table: str
    since: datetime
    until: datetime
    first: int = ALL_IDS[0]
    last: int = ALL_IDS[1]

    @property
    def select(self) -> str:
        """The statement for the table's own columns, with literals: COPY takes no parameters.

        Of deliveries it has more columns, and of attempts not all rows: see `successes`.
        """
        values = {"since": self.since, "until": self.until, "first": self.first, "last": self.last}
        return statement(_STATEMENTS[self.table]) % {
            name: literal(value) for name, value in values.items()
        }

    @property
    def of_attempts(self) -> Self:
        """The attempts of a piece of deliveries."""
        return replace(self, table=ATTEMPTS.name)


class InturnSource(spark.DataSource):
    """Options: `conninfo`, `snapshot`, `table`, `since`, `until` (ISO 8601), `bounds`.

    `bounds` are ids; each worker reads the part between two of them.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ", ".join(f"{column.name} {column.type}" for column in self._table.selected)

    def reader(self, schema: Any) -> "InturnReader":
        bounds = [int(bound) for bound in self.options["bounds"].split(",")]
        moments = (datetime.fromisoformat(self.options[name]) for name in ("since", "until"))
        since, until = moments
        return InturnReader(
            self._table,
            [
                Piece(table=self._table.name, since=since, until=until, first=first, last=last)
                for first, last in pairwise(bounds)
            ],
            conninfo=self.options["conninfo"],
            snapshot=self.options["snapshot"],
        )

    @property
    def _table(self) -> Table:
        return BY_NAME[self.options["table"]]


class InturnReader(spark.DataSourceReader):
    def __init__(
        self, table: Table, pieces: Sequence[Piece], *, conninfo: str, snapshot: str
    ) -> None:
        self._table = table
        self._pieces = pieces
        self._conninfo = conninfo
        self._snapshot = snapshot
        self._conditions: list[str] = []

    # The name is Spark's.
    def pushFilters(self, filters: list[spark.Filter]) -> Iterable[spark.Filter]:  # noqa: N802
        for condition in filters:
            text = sql_condition(condition)
            if text is None:
                yield condition
            else:
                self._conditions.append(text)

    def partitions(self) -> Sequence[spark.InputPartition]:
        """Return partitions each with the statement of a worker."""
        where = " AND ".join(self._conditions) or "true"
        return [
            spark.InputPartition(f"{_all_of(piece.select)} WHERE {where}") for piece in self._pieces
        ]

    def read(self, partition: spark.InputPartition) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self._table.selected)
        return read_batches(
            partition.value, schema, conninfo=self._conninfo, snapshot=self._snapshot
        )


def sql_condition(condition: spark.Filter) -> str | None:
    """Return a comparison of a column with a literal as SQL.

    Other filters give None; Spark evaluates them.
    """
    operator = _OPERATORS.get(type(condition))
    if operator is not None:
        column, value = condition.attribute, condition.value  # type: ignore[attr-defined]
        if len(column) == 1 and isinstance(value, _LITERALS):
            return f"{sql.Identifier(column[0]).as_string(None)} {operator} {literal(value)}"
    if isinstance(condition, spark.IsNotNull) and len(condition.attribute) == 1:
        return f"{sql.Identifier(condition.attribute[0]).as_string(None)} IS NOT NULL"
    return None


def _all_of(select: str) -> str:
    # The statements are ours, with literals quoted by psycopg.
    return f"SELECT * FROM ({select}) AS found"  # noqa: S608


def literal(value: object) -> str:
    return sql.Literal(value).as_string(None)


def read_batches(
    select: str, schema: pa.Schema, *, conninfo: str, snapshot: str
) -> Generator[pa.RecordBatch]:
    """Yield the statement's rows in a snapshot of PostgreSQL, in batches of some megabytes."""
    with open_reader(conninfo=conninfo, snapshot=snapshot) as read:
        yield from read(select, schema)


def open_reader(*, conninfo: str, snapshot: str) -> AbstractContextManager[Read]:
    """Open a connection for statements in a snapshot.

    Each must be read to the end, or closed with the connection, before the next.
    """
    by = reader_by_adbc if find_spec("adbc_driver_postgresql") else reader_by_copy
    return by(conninfo=conninfo, snapshot=snapshot)


@contextmanager
def reader_by_adbc(*, conninfo: str, snapshot: str) -> Iterator[Read]:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(conninfo, autocommit=True) as connection, connection.cursor() as cursor:
        for prelude in snapshot_statements(snapshot):
            cursor.execute(prelude)

        def read(select: str, schema: pa.Schema) -> Generator[pa.RecordBatch]:
            cursor.execute(select)
            for batch in cursor.fetch_record_batch():
                columns = zip(batch.columns, schema, strict=True)
                yield pa.RecordBatch.from_arrays(
                    [column.cast(field.type) for column, field in columns], schema=schema
                )

        yield read


@contextmanager
def reader_by_copy(*, conninfo: str, snapshot: str) -> Iterator[Read]:
    """Open a connection that yields the same batches without ADBC's driver."""
    with psycopg.connect(conninfo, autocommit=True) as connection, connection.cursor() as cursor:
        for prelude in snapshot_statements(snapshot):
            cursor.execute(prelude.encode())

        def read(select: str, schema: pa.Schema) -> Generator[pa.RecordBatch]:
            described = cursor.execute(f"{_all_of(select)} LIMIT 0".encode()).description
            assert described is not None
            with cursor.copy(f"COPY ({select}) TO STDOUT (FORMAT binary)".encode()) as copy:
                copy.set_types([column.type_code for column in described])
                yield from _batches(copy.rows(), schema)

        yield read


def _batches(arriving: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Generator[pa.RecordBatch]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in arriving:
        rows.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) == _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _batch(rows, schema)
            rows, size = [], 0
    if rows:
        yield _batch(rows, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def snapshot_statements(snapshot: str) -> tuple[str, ...]:
    """Return the statements by which several concurrent readers enter the snapshot."""
    return (
        SESSION,
        "SET max_parallel_workers_per_gather = 0",
        f"SET work_mem = '{_SORTING}'",
        # The primary key gives messages in their order; a bitmap's would be sorted, with their
        # bodies.
        "SET enable_bitmapscan = off",
        # Partitions without statistics have such high cost estimates that JIT would compile them.
        "SET jit = off",
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        f"SET TRANSACTION SNAPSHOT {literal(snapshot)}",
    )
