"""Report files: CSV (RFC 4180, UTF-8, safe in spreadsheets) or Parquet, visible once complete."""

import base64
import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
from pyarrow import parquet

from delivery.history.schemas import Table

FORMATS = ("csv", "parquet")
# A spreadsheet interprets a cell with such a beginning as a formula, and runs another person's
# code.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class RowWriter(Protocol):
    """Writes the rows of a report."""

    def write(self, batch: pa.RecordBatch) -> None: ...


@contextmanager
def row_writer(target: Path, table: Table, *, form: str) -> Iterator[RowWriter]:
    """Yield a writer of rows; the file gets its name, and is synced, when all rows are written.

    Only the owner can read it.
    """
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    hidden = target.with_name(f".{target.name}.part")
    try:
        descriptor = os.open(hidden, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - no path
            with _csv(file, table) if form == "csv" else _parquet(file, table) as rows:
                yield rows
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)


@contextmanager
def _parquet(file: IO[bytes], table: Table) -> Iterator[RowWriter]:
    # Each column carries the meaning.
    fields = [
        field.with_metadata({"description": column.meaning}) if column.meaning else field
        for field, column in zip(table.arrow, table.columns, strict=True)
    ]
    with parquet.ParquetWriter(file, pa.schema(fields), compression="zstd") as writer:
        yield _Parquet(writer, pa.schema(fields))


class _Parquet:
    def __init__(self, writer: parquet.ParquetWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_table(pa.Table.from_batches([batch]).cast(self._schema))


@contextmanager
def _csv(file: IO[bytes], table: Table) -> Iterator[RowWriter]:
    # Without translation of line ends: the writer follows RFC 4180, and bodies keep theirs.
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        yield _Csv(text, table)
    finally:
        text.detach()


class _Csv:
    """Writes the column names first, even without rows; prefixes formulas with an apostrophe."""

    def __init__(self, file: IO[str], table: Table) -> None:
        self._names = table.names
        self._writer = csv.writer(file)
        self._writer.writerow(self._names)

    def write(self, batch: pa.RecordBatch) -> None:
        for row in map(_readable, batch.to_pylist()):
            self._writer.writerow([cell(row[name]) for name in self._names])


def cell(value: object) -> str:
    """Return a cell's text; numbers are never a formula."""
    match value:
        case None:
            return ""
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case str():
            return f"'{value}" if value.startswith(_FORMULA) else value
    return str(value)


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    if "body" not in row:
        return row
    body = row["body"] or b""
    try:
        return row | {"body": body.decode(), "body_base64": ""}
    except UnicodeDecodeError:
        return row | {"body": "", "body_base64": base64.b64encode(body).decode()}
