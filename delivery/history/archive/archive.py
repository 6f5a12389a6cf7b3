"""The archive: folders of Parquet files, in a folder of this machine or at any URL that Spark writes.

    {archive}/{table}/day=2026-11-22/{chunk}-{part}.parquet      what counts, and nothing else
    {archive}/.staging/{chunk}/…                                 what a run is writing; the next one clears it away

Files are moved and removed by Arrow's file systems, which reach what Spark reaches (`s3a://` is `s3://` there) without a JVM.
"""

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs, parquet

from delivery.history.archive.ledger import File
from delivery.history.schemas import Table
from delivery.history.spark.frames import frame_of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGING = ".staging"


class ArchiveError(RuntimeError):
    """The archive is not as the ledger says; the message names the file."""


class Archive:
    """Where it is: an absolute folder, or a URL such as `s3a://bucket/inturn`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.is_folder = not urlsplit(self.url).scheme

    @cached_property
    def _place(self) -> tuple[fs.FileSystem, str]:
        if self.is_folder:
            return fs.LocalFileSystem(), self.url
        scheme, rest = self.url.split("://", 1)
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(
            f"{'s3' if scheme == 's3a' else scheme}://{rest}"
        )
        return found

    @property
    def files(self) -> fs.FileSystem:
        """Arrow's file system; its paths are those that `path` returns."""
        return self._place[0]

    def path(self, relative: str) -> str:
        """Return the path of a file for `files`."""
        return f"{self._place[1]}/{relative}"

    def address(self, relative: str) -> str:
        """Return the address of a file for Spark."""
        # Hadoop takes a path as it is written: a percent sign would stay one.
        return f"{'file://' if self.is_folder else ''}{self.url}/{relative}"

    def frame(self, spark: "SparkSession", table: Table, files: Iterable[File]) -> "DataFrame":
        """Return the rows of these files. A column that a file has not is null; of no files there are no rows."""
        addresses = [self.address(file.path) for file in files]
        if not addresses:
            return frame_of_rows(spark, table.columns, [])
        return spark.read.schema(table.spark).parquet(*addresses)

    def rows(self, table: Table, path: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file as it has them in groups; a column that it has not is null. Raises FileNotFoundError."""
        with self.files.open_input_file(self.path(path)) as opened:
            file = parquet.ParquetFile(opened)
            there = set(file.schema_arrow.names)
            for group in range(file.num_row_groups):
                found = file.read_row_group(group)
                columns = [
                    found[field.name] if field.name in there else pa.nulls(len(found), field.type)
                    for field in table.arrow
                ]
                yield from pa.Table.from_arrays(columns, schema=table.arrow).to_batches()

    def move(self, staged: str, path: str) -> None:
        """Put a file in place. Done already is as good: whoever was killed in between does it again."""
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
        """Remove a file, if it is there."""
        if self.files.get_file_info(self.path(path)).type != fs.FileType.NotFound:
            self.files.delete_file(self.path(path))

    def clear(self, folder: str) -> None:
        """Remove a folder with all that is in it, if it is there."""
        if self.files.get_file_info(self.path(folder)).type != fs.FileType.NotFound:
            self.files.delete_dir(self.path(folder))

    def parquet(self, folder: str) -> list[fs.FileInfo]:
        """Return the files of Parquet in a folder and those below it, by path."""
        found = self.files.get_file_info(
            fs.FileSelector(self.path(folder), recursive=True, allow_not_found=True)
        )
        return sorted((file for file in found if file.extension == "parquet"), key=lambda file: file.path)

    def relative(self, path: str) -> str:
        """Return what `path` was made of."""
        return path.removeprefix(f"{self._place[1]}/")


def _keep(path: Path) -> None:
    """Let the file, its name and that of its day outlive a power failure: the watermark will say that it is there."""
    for kept in (path, path.parent, path.parent.parent):
        descriptor = os.open(kept, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
