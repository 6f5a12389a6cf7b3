"""The work of Spark's workers in an export: each writes a piece of PostgreSQL's rows as Parquet.

PostgreSQL sends a checksum with each row, and after attempts their number. Afterwards every file is
read again, and must give the same checksum.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from pyarrow import compute, parquet

from delivery.history.archive.archive import Archive
from delivery.history.archive.chunk import Chunk, WrittenFile
from delivery.history.archive.file_sums import FileSums, read_sums
from delivery.history.archive.fingerprint import CHECKSUM, NO_ROWS, Fingerprint, fingerprint_of
from delivery.history.postgres.message_columns import MessageColumns
from delivery.history.postgres.names import Names
from delivery.history.postgres.sent_statements import sent_statement
from delivery.history.postgres.source import Piece, Read, open_reader
from delivery.history.postgres.successes import SENT, SUCCESS, RowSuccesses, success_checksum_sql
from delivery.history.schemas import (
    ATTEMPTS,
    BY_NAME,
    DAY,
    DELIVERIES,
    Column,
    Table,
    arrow_schema,
)


class IncompleteError(RuntimeError):
    """PostgreSQL's rows ended before their number arrived."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A piece and the number, which is part of the files' names."""

    number: int
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The common parameters of all workers: database, snapshot, and the place of the files."""

    conninfo: str = field(repr=False)
    snapshot: str
    names: Names
    archive: Archive
    chunk: Chunk

    def write(self, numbered: Numbered) -> "list[Extracted]":
        """Write a piece into the staging folder, a file per day; return summaries by table.

        Attempts are written with the piece of their deliveries.
        """
        piece = numbered.piece
        table = BY_NAME[piece.table]
        with self._reader() as read:
            if table is DELIVERIES:
                return self._write_deliveries(numbered, read)
            schema = arrow_schema((*table.bare, Column(CHECKSUM, "bigint")))
            received = ArrivingRows(table)
            rows = received.rows(read(sent_statement(table, piece.select), schema))
            return [self._write(table, numbered.number, rows, received)]

    def _write_deliveries(self, numbered: Numbered, read: Read) -> "list[Extracted]":
        piece = numbered.piece
        successes = RowSuccesses()
        received = ArrivingRows(DELIVERIES)
        select = sent_statement(DELIVERIES, piece.select, SUCCESS, success_checksum_sql())
        # A second connection: messages are read while deliveries arrive.
        with self._reader() as read_messages, closing(read(select, SENT)) as arriving:
            rows = MessageColumns(read_messages).joined(successes.taken(arriving))
            rows = received.rows(rows)
            deliveries = self._write(DELIVERIES, numbered.number, rows, received)
        schema = arrow_schema((*ATTEMPTS.bare, Column(CHECKSUM, "bigint")))
        received = ArrivingRows(ATTEMPTS, successes.sent)
        select = sent_statement(ATTEMPTS, piece.of_attempts.select)
        rows = successes.among(received.rows(read(select, schema)))
        return [deliveries, self._write(ATTEMPTS, numbered.number, rows, received)]

    def _reader(self) -> AbstractContextManager[Read]:
        return open_reader(conninfo=self.conninfo, snapshot=self.snapshot)

    def _write(
        self,
        table: Table,
        number: int,
        batches: Iterable[pa.RecordBatch],
        received: "ArrivingRows",
    ) -> "Extracted":
        """Write the received rows, and return their summary."""
        files: dict[date, _File] = {}
        with ExitStack() as closing:
            for batch in batches:
                for day, rows in rows_by_day(batch, table.at):
                    if day not in files:
                        file = _File(self.archive, table, self._named(table, day, number))
                        files[day] = closing.enter_context(file)
                    files[day].write(self.names.completed(table, rows))
        written = [file.written(table, day) for day, file in files.items()]
        return Extracted(
            table=table.name, files=written, sent=received.sent, counted=received.counted
        )

    def _named(self, table: Table, day: date, number: int) -> tuple[str, str]:
        """Return where the file is staged, and where it belongs.

        Each try has another staged name: an abandoned worker may still write.
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
    """Reads the files of an export back; rows whose named columns differ from `names` do not count.

    PostgreSQL's checksums are of the table's own columns, without those.
    """

    archive: Archive
    names: Names

    def sums(self, files: Sequence[tuple[str, str]]) -> list[FileSums]:
        """Return the sums of files, given as table and path."""
        return [self._sums(BY_NAME[table], path) for table, path in files]

    def _sums(self, table: Table, path: str) -> FileSums:
        return read_sums(self.archive, table, path, counts=partial(self.names.agree, table))


class ArrivingRows:
    """The rows of a piece as they arrive: their fingerprint, and their number by PostgreSQL.

    `before` is the fingerprint of rows arrived before.
    """

    def __init__(self, table: Table, before: Fingerprint = NO_ROWS) -> None:
        self._table = table
        self.sent = before
        self.counted = before.rows

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches without PostgreSQL's number, the last row of a counted table.

        Raises IncompleteError if PostgreSQL's part is missing.
        """
        key = self._table.key[0]
        awaits_count = self._table is ATTEMPTS
        for batch in batches:
            rows = batch
            if awaits_count and len(batch) and not batch.column(key)[len(batch) - 1].is_valid:
                awaits_count = False
                self.counted += batch.column(CHECKSUM)[len(batch) - 1].as_py()
                rows = batch.slice(0, len(batch) - 1)
            self.sent += fingerprint_of(rows.column(CHECKSUM))
            yield rows.drop_columns(CHECKSUM)
        if awaits_count:
            raise IncompleteError(f"PostgreSQL's {self._table.name} ended without their number.")


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


def rows_by_day(batch: pa.RecordBatch, at: str) -> Iterator[tuple[date, pa.RecordBatch]]:
    """Yield the rows of each day, in their order."""
    days = batch.column(at).cast(pa.date32())
    ends = compute.run_end_encode(days)
    if len(ends.run_ends) > len(compute.unique(ends.values)):
        # Stable.
        places = compute.sort_indices(days)
        batch, ends = batch.take(places), compute.run_end_encode(days.take(places))
    first = 0
    for day, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield day, batch.slice(first, end - first)
        first = end
