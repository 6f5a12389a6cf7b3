"""What Spark's workers do for an export: each takes a piece of PostgreSQL's rows, and writes them as Parquet as they come.

Afterwards every file is read again, and PostgreSQL computes what should be in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import psycopg
import pyarrow as pa
from pyarrow import compute, parquet

from delivery.history.archive import Archive
from delivery.history.chunk import Chunk, Written
from delivery.history.fingerprint import Fingerprint, in_postgresql, of_batches, of_row
from delivery.history.schemas import BY_NAME, DAY, Table
from delivery.history.source import Piece, in_snapshot, read


@dataclass(frozen=True, slots=True)
class Numbered:
    """A piece, and what the names of its files have of it."""

    number: int
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What a worker has to know besides its piece: where PostgreSQL is, which snapshot it shows, and where files belong."""

    conninfo: str
    snapshot: str
    archive: Archive
    chunk: Chunk

    def write(self, numbered: Numbered) -> list[Written]:
        """Write a piece into the chunk's staging folder: a file for each day."""
        table = BY_NAME[numbered.piece.table]
        select = f"SELECT * FROM ({numbered.piece.select}) AS found ORDER BY {', '.join(table.key)}"  # noqa: S608 - ours
        files: dict[date, _File] = {}
        with ExitStack() as closing:
            for batch in read(select, table.arrow, conninfo=self.conninfo, snapshot=self.snapshot):
                for day, rows in _by_day(batch, table.at):
                    if day not in files:
                        file = _File(self.archive, table, self._named(table, day, numbered.number))
                        files[day] = closing.enter_context(file)
                    files[day].write(rows)
        return [file.written(table, day) for day, file in files.items()]

    def count(self, piece: Piece) -> tuple[str, Fingerprint]:
        """Have PostgreSQL count the rows of a piece; return the table, too."""
        table = BY_NAME[piece.table]
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            for prelude in in_snapshot(self.snapshot):
                connection.execute(prelude.encode())
            row = connection.execute(in_postgresql(table, piece.select).encode()).fetchone()
        assert row is not None
        return piece.table, of_row(table, row)

    def _named(self, table: Table, day: date, number: int) -> tuple[str, str]:
        """Return where the file is staged, and where it belongs. Each try has its own: a worker that was given up may still write."""
        folder = f"{table.name}/{DAY}={day}"
        return (
            f"{self.chunk.staging}/{folder}/{number:05}-{token_hex(4)}.parquet",
            f"{folder}/{self.chunk.id}-{number:05}.parquet",
        )


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Reads files of the archive again."""

    archive: Archive

    def count(self, file: tuple[str, str]) -> tuple[str, Fingerprint]:
        """Count the rows of a file, given its table and path; return the table, too. One that is not there has none."""
        name, path = file
        try:
            return name, of_batches(BY_NAME[name], self.archive.rows(BY_NAME[name], path))
        except FileNotFoundError:
            return name, Fingerprint()


def by_table(counted: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Fingerprint]:
    """Sum what counting gave, as JSON has it, table by table."""
    found: dict[str, Fingerprint] = {}
    for table, fingerprint in counted:
        found[table] = found.get(table, Fingerprint()) + Fingerprint(**fingerprint)
    return found


class _File:
    """A file that is being written: a group of rows for each batch, which is as large as memory shall hold."""

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

    def written(self, table: Table, day: date) -> Written:
        return Written(
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
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self._bytes = self._sink.tell()
        self._sink.close()


def _by_day(batch: pa.RecordBatch, at: str) -> Iterator[tuple[date, pa.RecordBatch]]:
    days = batch.column(at).cast(pa.date32())
    different = compute.unique(days).to_pylist()
    for day in different:
        yield day, batch if len(different) == 1 else batch.filter(compute.equal(days, day))
