"""A chunk in the ledger: the files added by an export or a compaction to the archive, all or none.

    WRITING ──verified──▶ MOVING ──files in place──▶ DONE

If a run is killed while WRITING, none of the files is where readers look: the next run deletes the
chunk and clears the folder. If it is killed while MOVING, some files are in place, each of them
whole and verified, and the next run moves the others. Only at DONE does the ledger count them; the
same transaction moves the watermark, which retention relies on. Files replaced by a compaction are
removed afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import orjson
import psycopg
from pyarrow import fs, parquet

from delivery.database.statements import statement
from delivery.history.archive.archive import STAGING, Archive
from delivery.history.archive.file_sums import FileSums
from delivery.history.archive.identity import require_archive
from delivery.history.archive.ledger import File, try_lock_files
from delivery.history.schemas import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file written by a run.

    `staged` is where it is, `path` where it belongs, both relative to the archive.
    """

    table: str
    day: date
    staged: str
    path: str
    rows: int
    bytes: int
    first_id: int
    last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a chunk: verified files, with the number of rows by table.

    `sums` has the sums found on reading them back, by the staged path.

    For an export, `snapshot` is the snapshot of the reading; for a compaction, `replaced` are the
    replaced files.
    """

    written: Sequence[WrittenFile]
    sums: Mapping[str, FileSums]
    counts: Mapping[str, int]
    snapshot: str = ""
    replaced: Sequence[File] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A chunk as in the ledger."""

    id: int
    kind: str
    state: str
    until: datetime

    @property
    def staging(self) -> str:
        return f"{STAGING}/{self.id}"


def begin_chunk(
    database: psycopg.Connection[Any], *, kind: str, run_id: int, since: datetime, until: datetime
) -> Chunk:
    row = database.execute(
        statement("archive_begin"), {"kind": kind, "run": run_id, "since": since, "until": until}
    ).fetchone()
    assert row is not None
    return Chunk(id=row[0], kind=kind, state="WRITING", until=until)


def forget_chunk(database: psycopg.Connection[Any], chunk: Chunk) -> None:
    """Delete a WRITING chunk from the ledger."""
    database.execute(
        "DELETE FROM delivery_archivechunk WHERE id = %s AND state = 'WRITING'", [chunk.id]
    )


def add_to_archive(
    database: psycopg.Connection[Any], archive: Archive, chunk: Chunk, content: Content
) -> None:
    """Add verified files to the archive, in place of those they replace.

    The archive's place may have changed since the run began: a vanished mount leaves an empty
    folder.
    """
    require_archive(database, archive.url)
    rows = [
        {
            "table": written_file.table,
            "day": written_file.day,
            "path": written_file.path,
            "staged": written_file.staged,
            "rows": written_file.rows,
            "bytes": written_file.bytes,
            "first_id": written_file.first_id,
            "last_id": written_file.last_id,
            "sha256": content.sums[written_file.staged].sha256,
            "checksum": content.sums[written_file.staged].fingerprint.checksum_text,
        }
        for written_file in content.written
    ]
    database.execute(
        statement("archive_move"),
        {
            "chunk": chunk.id,
            "files": orjson.dumps(rows).decode(),
            "replaced": [file.id for file in content.replaced],
            "snapshot": content.snapshot,
            "counts": orjson.dumps(content.counts).decode(),
        },
    )
    for written_file in content.written:
        archive.move(written_file.staged, written_file.path)
    finish(database, archive, chunk)


def finish(database: psycopg.Connection[Any], archive: Archive, chunk: Chunk) -> None:
    """Mark a chunk with all files in place as DONE: the files count."""
    database.execute(statement("archive_finish"), {"chunk": chunk.id})
    archive.clear(chunk.staging)
    remove_replaced(database, archive)


def recover_chunks(database: psycopg.Connection[Any], archive: Archive) -> None:
    """Finish or delete the chunks left by a killed run.

    Call it under the lock of the export, before anything else.
    """
    for id, kind, state, until in database.execute(statement("archive_unfinished")).fetchall():
        chunk = Chunk(id=id, kind=kind, state=state, until=until)
        if state == "WRITING":
            forget_chunk(database, chunk)
            continue
        files = "SELECT staged, path FROM delivery_archivefile WHERE chunk_id = %s ORDER BY id"
        for staged, path in database.execute(files, [id]).fetchall():
            archive.move(staged, path)
        finish(database, archive, chunk)
    # Including the files of chunks under way when the connection was lost.
    archive.clear(STAGING)
    remove_replaced(database, archive)


def remove_replaced(database: psycopg.Connection[Any], archive: Archive) -> None:
    """Remove replaced files, unless a run may be reading them; the next call removes the rest."""
    with try_lock_files(database) as is_alone:
        replaced = database.execute(statement("archive_replaced")).fetchall() if is_alone else []
        for id, path in replaced:
            archive.remove(path)
            database.execute("DELETE FROM delivery_archivefile WHERE id = %s", [id])


def written_files(archive: Archive, chunk: Chunk, table: Table) -> list[WrittenFile]:
    """Return Spark's files of a table into the chunk's staging folder."""
    return [
        _written(archive, chunk, table, file)
        for file in archive.parquet(f"{chunk.staging}/{table.name}")
    ]


def _written(archive: Archive, chunk: Chunk, table: Table, file: fs.FileInfo) -> WrittenFile:
    """Describe a staged file and the place for it.

    `…/day=2026-11-22/part-00000-….parquet` belongs at `messages/day=2026-11-22/17-00000.parquet`.
    """
    day, name = file.path.split("/")[-2:]
    metadata = parquet.read_metadata(file.path, filesystem=archive.files)
    place = metadata.schema.to_arrow_schema().get_field_index(table.key[0])
    ids = [
        metadata.row_group(group).column(place).statistics
        for group in range(metadata.num_row_groups)
    ]
    return WrittenFile(
        table=table.name,
        day=date.fromisoformat(day.partition("=")[2]),
        staged=archive.relative(file.path),
        path=f"{table.name}/{day}/{chunk.id}-{name.split('-')[1]}.parquet",
        rows=metadata.num_rows,
        bytes=file.size,
        first_id=min(statistics.min for statistics in ids),
        last_id=max(statistics.max for statistics in ids),
    )
