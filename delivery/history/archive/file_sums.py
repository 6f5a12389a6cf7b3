"""The sums of a file of the archive: of the bytes (SHA-256), and of the rows.

They are computed where a file is read back after it was written, and kept in the ledger.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
from pyarrow import parquet

from delivery.history.archive.archive import Archive, rows_of_file
from delivery.history.archive.fingerprint import NO_ROWS, Fingerprint, fingerprint_of_batches
from delivery.history.schemas import Table

# Files up to this size are read once, into memory: their bytes, and from these their rows.
_SMALL_BYTES = 64 * 1024 * 1024
# Of Arrow's error texts.
_MOST_WORDS = 200
_PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSums:
    """The sums of the file at `path`; without `bytes` it is not there.

    `fingerprint` is of the table's own columns, as PostgreSQL computes it; `complete` is of all
    columns. `error` is why the rows cannot be read; then both have no rows. `certain` is of
    `Table.certain`, None if it was not computed, or if the file has not all of these columns.
    """

    path: str
    bytes: int | None = None
    sha256: str = ""
    fingerprint: Fingerprint = NO_ROWS
    complete: Fingerprint = NO_ROWS
    certain: Fingerprint | None = None
    error: str = ""

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> Self:
        fingerprints = {
            name: values[name] and Fingerprint(**values[name])
            for name in ("fingerprint", "complete", "certain")
        }
        return cls(**{**values, **fingerprints})


def sums_by_path(read: Iterable[Mapping[str, Any]]) -> dict[str, FileSums]:
    """Return the sums sent by workers as JSON, by path."""
    return {values["path"]: FileSums.of_json(values) for values in read}


def total_of(sums: Iterable[FileSums]) -> Fingerprint:
    return sum((file_sum.fingerprint for file_sum in sums), NO_ROWS)


def _every_row(_: pa.RecordBatch) -> bool:
    return True


def read_sums(
    archive: Archive,
    table: Table,
    path: str,
    *,
    counts: Callable[[pa.RecordBatch], bool] = _every_row,
    is_complete: bool = False,
    is_compared: bool = False,
) -> FileSums:
    """Read all bytes and all columns of a file; batches for which `counts` is false do not count.

    `complete` and, with `is_compared`, `certain` are computed if asked for.
    """
    size = archive.files.get_file_info(archive.path(path)).size
    if size is None:
        return FileSums(path=path)
    digest = hashlib.sha256()
    with archive.files.open_input_file(archive.path(path)) as opened:
        content: Any = opened
        if size <= _SMALL_BYTES:
            content = pa.BufferReader(_hashed(digest, opened.read_buffer()))
        else:
            for piece in _pieces(opened):
                _hashed(digest, piece)
            opened.seek(0)
        sums = FileSums(path=path, bytes=size, sha256=digest.hexdigest())
        try:
            fingerprint, complete, certain = NO_ROWS, NO_ROWS, NO_ROWS
            is_compared = is_compared and _has_certain(table, content)
            for batch in filter(counts, rows_of_file(table, content)):
                of_batch = fingerprint_of_batches(table.bare, [batch])
                fingerprint += of_batch
                if is_complete:
                    complete += fingerprint_of_batches(table.columns, [batch])
                if is_compared and table.certain == table.bare:
                    certain += of_batch
                elif is_compared:
                    certain += fingerprint_of_batches(table.certain, [batch])
        except (OSError, pa.ArrowException, ValueError) as error:
            words = " ".join(str(error).split())[:_MOST_WORDS]
            return replace(sums, error=words or type(error).__name__)
    return replace(
        sums,
        fingerprint=fingerprint,
        complete=complete,
        certain=certain if is_compared else None,
    )


def _has_certain(table: Table, content: Any) -> bool:
    names = set(parquet.read_schema(content).names)
    return all(column.name in names for column in table.certain)


def _pieces(opened: Any) -> Iterator[pa.Buffer]:
    while len(piece := opened.read_buffer(_PIECE_BYTES)):
        yield piece


def _hashed(digest: Any, piece: pa.Buffer) -> pa.Buffer:
    digest.update(piece)
    return piece
