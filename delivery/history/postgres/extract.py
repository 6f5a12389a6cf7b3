"""The work of Spark's workers in an export: each writes a piece of PostgreSQL's rows as Parquet.

PostgreSQL sends a checksum with each row. Afterwards every file is read again, and must give the
same checksum.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from itertools import chain
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import psycopg
import pyarrow as pa
from pyarrow import compute, parquet

from delivery.history.archive.archive import Archive
from delivery.history.archive.chunk import Chunk, WrittenFile
from delivery.history.archive.fingerprint import (
    CHECKSUM,
    Fingerprint,
    fingerprint_of,
    fingerprint_of_batches,
    fingerprint_sql,
)
from delivery.history.postgres.names import Names
from delivery.history.postgres.source import Piece, read_batches, snapshot_statements
from delivery.history.schemas import ATTEMPTS, BY_NAME, DAY, Column, Table, arrow_schema


@dataclass(frozen=True, slots=True)
class Numbered:
    """A piece and its number, which is part of its files' names."""

    number: int
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The common parameters of all workers: database, snapshot, and the place of the files."""

    conninfo: str
    snapshot: str
    names: Names
    archive: Archive
    chunk: Chunk

    def write(self, numbered: Numbered) -> "Extracted":
        """Write a piece into the staging folder, one file per day; return its summary."""
        table = BY_NAME[numbered.piece.table]
        select = _with_checksum(table, numbered.piece.select)
        schema = arrow_schema((*table.bare, Column(CHECKSUM, "bigint")))
        files: dict[date, _File] = {}
        sent = Fingerprint()
        with ExitStack() as closing:
            for batch in read_batches(
                select, schema, conninfo=self.conninfo, snapshot=self.snapshot
            ):
                sent += fingerprint_of(batch.column(CHECKSUM))
                for day, rows in _by_day(self.names.completed(table, batch), table.at):
                    if day not in files:
                        file = _File(self.archive, table, self._named(table, day, numbered.number))
                        files[day] = closing.enter_context(file)
                    files[day].write(rows)
        written = [file.written(table, day) for day, file in files.items()]
        counted = self._count(numbered.piece) if table is ATTEMPTS else 0
        return Extracted(table=table.name, files=written, sent=sent, counted=counted)

    def _count(self, piece: Piece) -> int:
        """Count the rows of a piece in PostgreSQL."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            for prelude in snapshot_statements(self.snapshot):
                connection.execute(prelude.encode())
            counting = f"SELECT count(*) FROM ({piece.select}) AS found"  # noqa: S608 - ours
            row = connection.execute(counting.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def _named(self, table: Table, day: date, number: int) -> tuple[str, str]:
        """Return where the file is staged, and where it belongs.

        Each try has its own staged name: a worker that was given up may still write.
        """
        folder = f"{table.name}/{DAY}={day}"
        return (
            f"{self.chunk.staging}/{folder}/{number:05}-{token_hex(4)}.parquet",
            f"{folder}/{self.chunk.id}-{number:05}.parquet",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The files of a piece, the fingerprint of the rows as PostgreSQL sent it, and a count.

    `counted` is PostgreSQL's own count of the rows, 0 if the export has counted them before.
    """

    table: str
    files: list[WrittenFile]
    sent: Fingerprint
    counted: int

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> Self:
        files = [
            WrittenFile(**file | {"day": date.fromisoformat(file["day"])})
            for file in values["files"]
        ]
        return cls(
            table=values["table"],
            files=files,
            sent=Fingerprint(**values["sent"]),
            counted=values["counted"],
        )


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Reads files of the archive back.

    With `names` it reads the table's own columns, and checks that the other columns agree with the
    names; otherwise it reads all columns.
    """

    archive: Archive
    names: Names | None = None

    def count(self, files: Sequence[tuple[str, str]]) -> list[tuple[str, Fingerprint]]:
        """Count the rows of files, given as table and path; return each with its table."""
        return [(table, self._count(BY_NAME[table], path)) for table, path in files]

    def _count(self, table: Table, path: str) -> Fingerprint:
        """Count the rows of a file.

        A missing file has none, and batches with other names do not count.
        """
        columns = table.columns if self.names is None else table.bare
        fingerprint = Fingerprint()
        try:
            for batch in self.archive.rows(table, path):
                if self.names is None or self.names.agree(table, batch):
                    fingerprint += fingerprint_of_batches(columns, [batch])
        except FileNotFoundError:
            return Fingerprint()
        return fingerprint


def fingerprints_by_table(
    counted: Iterable[Sequence[tuple[str, Mapping[str, Any]]]],
) -> dict[str, Fingerprint]:
    """Sum JSON results of counting, by table."""
    fingerprints: dict[str, Fingerprint] = {}
    for table, fingerprint in chain.from_iterable(counted):
        fingerprints[table] = fingerprints.get(table, Fingerprint()) + Fingerprint(**fingerprint)
    return fingerprints


class _File:
    """A file being written, with a row group per batch; a batch is as large as memory allows."""

    def __init__(self, archive: Archive, table: Table, names: tuple[str, str]) -> None:
        self._staged, self._path = names
        path = archive.path(self._staged)
        archive.files.create_dir(path.rpartition("/")[0])
        self._id = table.key[0]
        self._sink = archive.files.open_output_stream(path)
        texts = [column.name for column in table.columns if column.type == "string"]
        self._writer = parquet.ParquetWriter(
            self._sink, table.arrow, compression="zstd", use_dictionary=texts
        )
        self._rows = 0
        self._ids: list[int] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        self._rows += batch.num_rows
        self._ids += compute.min_max(batch.column(self._id)).as_py().values()

    def written(self, table: Table, day: date) -> WrittenFile:
        return WrittenFile(
            table=table.name,
            day=day,
            staged=self._staged,
            path=self._path,
            rows=self._rows,
            bytes=self._bytes,
            first_id=min(self._ids),
            last_id=max(self._ids),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()
        self._bytes = self._sink.tell()
        self._sink.close()


def _with_checksum(table: Table, select: str) -> str:
    """Return the statement that selects the rows in their order, each with its checksum."""
    order = f"ORDER BY {', '.join(table.key)}"
    # The inner ORDER BY sorts rows before the checksum widens them, by an index if there is one;
    # then the outer one costs nothing more. All parts of the statement are ours.
    checksum = fingerprint_sql(table.bare)
    return f"SELECT *, {checksum} FROM ({select} {order}) AS found {order}"  # noqa: S608


def _by_day(batch: pa.RecordBatch, at: str) -> Iterator[tuple[date, pa.RecordBatch]]:
    days = batch.column(at).cast(pa.date32())
    ends = compute.run_end_encode(days)
    if len(ends.run_ends) == len(compute.unique(ends.values)):
        # The rows are in order, as usual: nothing has to be copied.
        first = 0
        for day, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
            yield day, batch.slice(first, end - first)
            first = end
        return
    for day in compute.unique(days).to_pylist():
        yield day, batch.filter(compute.equal(days, day))
