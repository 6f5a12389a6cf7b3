"""Compaction: merges many small files of a day into a few, with the same rows.

Parquet readers pay for each file. The files are first read and compared with the sums in the
ledger, so no damage is merged into a seemingly sound file. The ledger's change is a transaction; a
foreign reader of the folders between this change and the removal of the replaced files sees both.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, groupby

from delivery.history.archive import chunk as chunks
from delivery.history.archive.archive import Archive
from delivery.history.archive.file_sums import FileSums, read_sums, sums_by_path, total_of
from delivery.history.archive.fingerprint import Fingerprint
from delivery.history.archive.ledger import File, files, try_lock_files
from delivery.history.archive.losses import damage_of
from delivery.history.job import StepJob
from delivery.history.schemas import DAY, TABLES, Table
from delivery.history.spark.workers import dealt_shares, run_tasks

# For a day and a table, compaction pays from this number of small files on.
MANY = 8
SMALL_BYTES = 32 * 1024 * 1024
WHOLE_BYTES = 128 * 1024 * 1024


class CompactionError(RuntimeError):
    """The rows of the new files differ from the old; nothing was replaced.

    The message names the day.
    """


def compact_files(job: StepJob, *, many: int = MANY) -> int:
    """Merge small files, day by day; return how many were replaced. Under the lock of the export.

    Does nothing while a run reads files: it would miss the replaced files. A run begun meanwhile
    waits.
    """
    with try_lock_files(job.database) as is_alone:
        return _compact_days(job, many=many) if is_alone else 0


def _compact_days(job: StepJob, *, many: int) -> int:
    replaced = 0
    for table in TABLES:
        small = [file for file in files(job.database, table.name) if file.bytes < SMALL_BYTES]
        for day, group in groupby(small, key=lambda file: file.day):
            of_day = list(group)
            if len(of_day) >= many:
                job.progress.doing(f"compacting {table.name} of {day}")
                replaced += len(of_day) * _compact(job, table, of_day)
    return replaced


def _compact(job: StepJob, table: Table, old: list[File]) -> bool:
    """Merge files; False if any of them is damaged, which a merger would hide."""
    before = _read(job, table, [file.path for file in old])
    if any(damage_of(file, before[file.path]) for file in old):
        job.progress.doing(f"leaving damaged {table.name} of {old[0].day}: see verify --whole")
        return False
    first = old[0]
    row = job.database.execute("SELECT until FROM delivery_archived WHERE id = 1").fetchone()
    assert row is not None
    chunk = chunks.begin_chunk(
        job.database, kind="COMPACTION", run_id=job.run_id, since=row[0], until=row[0]
    )
    rows = job.read_files(table, old)
    whole = -(-sum(file.bytes for file in old) // WHOLE_BYTES)
    ordered = rows.repartitionByRange(whole, table.key[0]).sortWithinPartitions(*table.key)
    job.write_files(ordered, f"{chunk.staging}/{table.name}/{DAY}={first.day}")
    written = chunks.written_files(job.archive, chunk, table)
    after = _read(job, table, [file.staged for file in written])
    count = total_of(after.values()).rows
    if _complete(before.values()) != _complete(after.values()):
        raise CompactionError(
            f"Of {table.name} of {first.day}, {total_of(before.values()).rows:,} rows became "
            f"{count:,}. Nothing was replaced."
        )
    content = chunks.Content(written=written, sums=after, replaced=old, counts={table.name: count})
    chunks.add_to_archive(job.database, job.archive, chunk, content)
    return True


def _read(job: StepJob, table: Table, paths: list[str]) -> dict[str, FileSums]:
    read = partial(_sums, job.archive, table)
    return sums_by_path(chain.from_iterable(run_tasks(job.spark, dealt_shares(paths), read)))


def _sums(archive: Archive, table: Table, paths: Sequence[str]) -> list[FileSums]:
    return [read_sums(archive, table, path, is_complete=True) for path in paths]


def _complete(sums: Iterable[FileSums]) -> Fingerprint:
    return sum((file_sum.complete for file_sum in sums), Fingerprint())
