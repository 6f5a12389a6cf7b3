"""The archive: Parquet files in a folder of this machine or at any URL writable by Spark.

    {archive}/{table}/day=2026-11-22/{chunk}-{part}.parquet   the files that count, nothing else
    {archive}/.staging/{chunk}/…                              files being written; the next run
                                                              clears leftovers

Files are moved and removed by Arrow's file systems, which access the same places as Spark (`s3a://`
is `s3://` there) without a JVM. Where Spark has no connector for the URL, Arrow also reads and
writes the rows (see `arrow_files`).
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs, parquet

from delivery.history.archive.small_files import ArchiveError, sync_to_disk
from delivery.history.archive.storage import file_system_at
from delivery.history.schemas import Table

STAGING = ".staging"


class Archive:
    """An archive at an absolute folder or a URL such as `s3a://bucket/inturn`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.is_folder = not urlsplit(self.url).scheme
        # Whether Spark itself reads and writes there; None: not known yet.
        self.has_connector: bool | None = True if self.is_folder else None

    @cached_property
    def _place(self) -> tuple[fs.FileSystem, str]:
        return file_system_at(self.url)

    @property
    def files(self) -> fs.FileSystem:
        """Arrow's file system; paths as `path` returns them."""
        return self._place[0]

    def path(self, relative: str) -> str:
        """Return the path of a file for `files`."""
        return f"{self._place[1]}/{relative}"

    def address(self, relative: str) -> str:
        """Return the address of a file for Spark."""
        # Hadoop does not decode paths: a percent-encoded character would stay encoded.
        return f"{'file://' if self.is_folder else ''}{self.url}/{relative}"

    def rows(self, table: Table, path: str, names: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file by row group; raises FileNotFoundError.

        `names` are columns, all if none. A column missing in the file is null.
        """
        with self.files.open_input_file(self.path(path)) as opened:
            yield from rows_of_file(table, opened, names)

    def move(self, staged: str, path: str) -> None:
        """Move a file into place; idempotent, so a killed run can be repeated."""
        source, target = self.path(staged), self.path(path)
        if self.files.get_file_info(source).type == fs.FileType.NotFound:
            if self.files.get_file_info(target).type == fs.FileType.NotFound:
                raise ArchiveError(
                    f"{path} is neither in place nor where it was written: {self.url} was changed."
                )
        else:
            self.files.create_dir(target.rpartition("/")[0])
            self.files.move(source, target)
        if self.is_folder:
            _keep(Path(target))

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        if self.files.get_file_info(self.path(path)).type != fs.FileType.NotFound:
            self.files.delete_file(self.path(path))

    def clear(self, folder: str) -> None:
        """Remove a folder with all files in it, if it exists."""
        if self.files.get_file_info(self.path(folder)).type != fs.FileType.NotFound:
            self.files.delete_dir(self.path(folder))

    def parquet(self, folder: str) -> list[fs.FileInfo]:
        """Return the Parquet files of a folder and the subfolders, by path."""
        infos = self.files.get_file_info(
            fs.FileSelector(self.path(folder), recursive=True, allow_not_found=True)
        )
        return sorted(
            (file for file in infos if file.extension == "parquet"), key=lambda file: file.path
        )

    def relative(self, path: str) -> str:
        """Return the argument from which `path` built this path."""
        return path.removeprefix(f"{self._place[1]}/")


def rows_of_file(table: Table, opened: Any, names: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an opened Parquet file, as `Archive.rows` does."""
    schema = pa.schema([field for field in table.arrow if not names or field.name in names])
    file = parquet.ParquetFile(opened)
    there = [name for name in schema.names if name in set(file.schema_arrow.names)]
    for group in range(file.num_row_groups):
        row_group = file.read_row_group(group, there)
        columns = [
            row_group[field.name] if field.name in there else pa.nulls(len(row_group), field.type)
            for field in schema
        ]
        yield from pa.Table.from_arrays(columns, schema=schema).to_batches()


def _keep(path: Path) -> None:
    """Sync the file and the directory entries to disk: the watermark will rely on them.

    The entries are those of the file and of the day's folder.
    """
    for kept in (path, path.parent, path.parent.parent):
        sync_to_disk(kept)
