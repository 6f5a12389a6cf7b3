"""Losses of the archive: missing or changed files, foreign files, exported rows.

looked at                      finds                                            by
─────────────────────────────  ───────────────────────────────────────────────  ────────────────
names and sizes in the folder  a file that is lost or has another size, a file  every verify
                               that the ledger does not know
all bytes and all columns      a file with other content, another file's        a whole verify
                               content, rows that cannot be read or differ
the rows of PostgreSQL         a file whose rows differ, although its sums do   a whole verify
                               not; rows that no file has
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from delivery.database.statements import statement
from delivery.history.archive.archive import Archive
from delivery.history.archive.file_sums import FileSums, read_sums, sums_by_path
from delivery.history.archive.fingerprint import Fingerprint
from delivery.history.archive.ledger import File
from delivery.history.archive.proof import ProofLostError, row_counts
from delivery.history.archive.small_files import ArchiveError
from delivery.history.schemas import BY_NAME, TABLES

if TYPE_CHECKING:
    from delivery.history.job import StepJob

Result = TypeVar("Result")
Files = Mapping[str, list[File]]


@dataclass(slots=True, kw_only=True)
class FileReport:
    """The state of the archive's files.

    `sound` are files to read, by table. The others are sentences: `damages`, by path, about the
    ledger's other files, `losses` about rows missing in all files, `strangers` about files unknown
    to the ledger, and `later` about files of exports unknown to this database, as after a restore:
    no damage. `unproven` counts sound files of which no checksum was kept, so nothing proves their
    content. `certain` are the fingerprints of `Table.certain`, by path, of the read files with
    these columns.
    """

    sound: dict[str, list[File]]
    damages: dict[str, str] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    compared: int = 0
    uncompared: int = 0
    unproven: int = 0
    certain: dict[str, Fingerprint] = field(default_factory=dict)

    @property
    def checked(self) -> int:
        return sum(map(len, self.sound.values())) + len(self.damages)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the check, with those which are no damage."""
        return {
            "checked": self.checked,
            "no_checksum_was_kept": self.unproven,
            "of_exports_after_the_backup": len(self.later),
        }

    @property
    def limits(self) -> str:
        """The part outside a verdict, as the rest of a sentence; usually empty."""
        if not self.unproven:
            return ""
        return (
            f", without the content of {self.unproven:,} files of the archive: no checksum was "
            "kept when they were exported, and PostgreSQL no longer has all of their rows"
        )

    def require_sound(self) -> None:
        """Raise ProofLostError if a file of the archive is damaged, or not in the ledger."""
        for words in (*self.damages.values(), *self.strangers):
            raise ProofLostError(words.removesuffix("."))


def look_at_folder(archive: Archive, database: psycopg.Connection[Any], files: Files) -> FileReport:
    """Compare the ledger's files with the folder's, by name and size.

    The caller protects the files against removal (`ledger.read_files`), and has read `files` from
    the ledger before: a file moved into place by a running export meanwhile is none of them, and is
    in the ledger before it is in the folder.
    """
    sizes = {
        archive.relative(info.path): info.size
        for table in TABLES
        for info in archive.parquet(table.name)
    }
    known, chunks = _known(database)
    report = FileReport(sound={})
    for table, found in files.items():
        report.sound[table] = [file for file in found if sizes.get(file.path) == file.bytes]
        report.damages |= {
            file.path: _of_size(file, sizes.get(file.path))
            for file in found
            if sizes.get(file.path) != file.bytes
        }
    for path in sorted(sizes.keys() - known):
        if _is_later(path, chunks):
            report.later.append(
                f"{path} is of an export that this database does not know, as after a restore from "
                "a back-up. It does not count, and the rows are exported again. Move it away: "
                "other readers of the folder count its rows twice."
            )
        else:
            report.strangers.append(
                f"{path} is in the archive's folder, and not in its ledger. It does not count; "
                "other readers of the folder count its rows: move it away."
            )
    return report


def _known(database: psycopg.Connection[Any]) -> tuple[set[str], set[int]]:
    """Return the paths of the ledger's files, counted or not, and the chunks."""
    row = database.execute(statement("archive_known")).fetchone()
    assert row is not None
    return set(row[0]), set(row[1])


def _is_later(path: str, chunks: set[int]) -> bool:
    """Return whether the file's name is from a chunk missing in the ledger.

    Until the first chunk of this database there is nothing to compare the number with.
    """
    number, dash, part = path.rpartition("/")[2].removesuffix(".parquet").partition("-")
    is_named = bool(dash) and number.isdecimal() and part.isdecimal()
    return is_named and int(number) not in chunks and int(number) > min(chunks, default=0)


def look_into_files(job: "StepJob", report: FileReport) -> None:
    """Read all bytes and all columns of the sound files; differing files are sound no more."""
    files = sorted(chain.from_iterable(report.sound.values()), key=lambda file: -file.bytes)
    if not files:
        return
    from delivery.history.spark.workers import dealt_shares

    job.progress.doing(f"reading {len(files):,} files")
    shares = dealt_shares([(file.table, file.path) for file in files])
    read = job.run_tasks(shares, partial(_sums, job.archive), rows=sum(file.rows for file in files))
    sums = sums_by_path(chain.from_iterable(read))
    owners = {file.sha256: file.path for file in files if file.sha256}
    damages = {file.path: damage_of(file, sums[file.path], owners=owners) for file in files}
    report.damages |= {path: words for path, words in damages.items() if words}
    report.certain = {path: read.certain for path, read in sums.items() if read.certain is not None}
    for table, found in report.sound.items():
        report.sound[table] = [file for file in found if not damages[file.path]]
    report.unproven = sum(not file.sha256 for file in chain.from_iterable(report.sound.values()))


def _sums(archive: Archive, share: Sequence[tuple[str, str]]) -> list[FileSums]:
    return [read_sums(archive, BY_NAME[table], path, is_compared=True) for table, path in share]


_NO_OWNERS: Mapping[str, str] = {}


def damage_of(file: File, sums: FileSums, *, owners: Mapping[str, str] = _NO_OWNERS) -> str:
    """Return how a file differs from the ledger, as a sentence; empty if it does not.

    `owners` are paths by SHA-256: a file may have another file's content.
    """
    if sums.bytes != file.bytes:
        return _of_size(file, sums.bytes)
    if file.sha256 and sums.sha256 != file.sha256 and sums.sha256 in owners:
        return f"{file.path} of the archive has the content of {owners[sums.sha256]}."
    if sums.error:
        return f"{file.path} of the archive, with {file.rows:,} rows, cannot be read: {sums.error}."
    if sums.fingerprint.rows != file.rows:
        return f"{file.path} of the archive has {sums.fingerprint.rows:,} rows, not {file.rows:,}."
    if file.checksum and sums.fingerprint.checksum_text != file.checksum:
        return f"{file.path} of the archive has rows other than those that were exported."
    if file.sha256 and sums.sha256 != file.sha256:
        return (
            f"{file.path} of the archive has other bytes than were exported, in columns that "
            "repeat names of subscriptions, or beside the rows."
        )
    return ""


def lost_rows(files: Files, exported: Mapping[str, int]) -> Iterable[str]:
    """Yield a sentence for each table whose files do not have as many rows as were exported."""
    for table, rows in row_counts(files).items():
        if rows != (count := exported.get(table, 0)):
            yield f"{count:,} rows of {table} were exported, and the archive's files have {rows:,}."


def read_what_is_there(
    job: "StepJob", files: Sequence[File], read: Callable[[list[File]], Result]
) -> tuple[Result, dict[str, str]]:
    """Call `read` with the readable files, and return the result of `read`.

    Also returns a sentence for each other file, by path. A file whose damage shows only in reading
    makes `read` fail: then all of them are read through, and `read` is called once more without it.
    """
    lacking = absent_files(job.archive, files)
    there = [file for file in files if file.path not in lacking]
    try:
        return read(there), lacking
    except Exception as error:
        if not is_about_files(error):
            raise
        report = FileReport(sound={table.name: [] for table in TABLES})
        for file in there:
            report.sound[file.table].append(file)
        look_into_files(job, report)
        if not report.damages:
            raise
    lacking |= report.damages
    return read([file for file in there if file.path not in lacking]), lacking


def is_about_files(error: Exception) -> bool:
    """Return whether Spark could not read a file, rather than ran out of memory or was ended."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException | Py4JJavaError) and (
        "OutOfMemoryError" not in str(error)
    )


def require_files(archive: Archive, files: Sequence[File]) -> None:
    """Raise ArchiveError if one of these files is not there with the recorded size."""
    for words in absent_files(archive, files).values():
        raise ArchiveError(
            f"{words} Copy it from a back-up of the archive, and run this again; "
            "`manage.py history verify --whole` lists all damage."
        )


def absent_files(archive: Archive, files: Sequence[File]) -> dict[str, str]:
    """Return a sentence for each of these files that is not there with its size, by path."""
    infos = archive.files.get_file_info([archive.path(file.path) for file in files])
    return {
        file.path: _of_size(file, info.size)
        for file, info in zip(files, infos, strict=True)
        if info.size != file.bytes
    }


def _of_size(file: File, size: int | None) -> str:
    if size is None:
        return f"{file.path} of the archive, with {file.rows:,} rows, is not there."
    return f"{file.path} of the archive has {size:,} bytes instead of {file.bytes:,}."
