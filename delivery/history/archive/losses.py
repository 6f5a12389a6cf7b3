"""Losses of the archive: files that are missing or have another size, and exported rows."""

from collections.abc import Iterable, Mapping

from delivery.history.archive.archive import Archive
from delivery.history.archive.ledger import File
from delivery.history.archive.proof import row_counts

Files = Mapping[str, list[File]]


def whole_files(archive: Archive, files: Files) -> tuple[dict[str, list[File]], list[str]]:
    """Return the files by table that are as the ledger has them, and a sentence for each other.

    It looks at their sizes only.
    """
    wanted = [file for found in files.values() for file in found]
    infos = archive.files.get_file_info([archive.path(file.path) for file in wanted])
    # Null if there is no such file.
    sizes = {file.path: info.size for file, info in zip(wanted, infos, strict=True)}
    whole = {
        table: [file for file in found if sizes[file.path] == file.bytes]
        for table, found in files.items()
    }
    return whole, [
        _words(file, sizes[file.path]) for file in wanted if file not in whole[file.table]
    ]


def lost_rows(files: Files, exported: Mapping[str, int]) -> Iterable[str]:
    """Yield a sentence for each table whose files do not have as many rows as were exported."""
    for table, rows in row_counts(files).items():
        if rows != (count := exported.get(table, 0)):
            yield f"{count:,} rows of {table} were exported, and the archive's files have {rows:,}."


def _words(file: File, size: int | None) -> str:
    if size is None:
        return f"{file.path} of the archive, with {file.rows:,} rows, is not there."
    return f"{file.path} of the archive has {size:,} bytes instead of {file.bytes:,}."
