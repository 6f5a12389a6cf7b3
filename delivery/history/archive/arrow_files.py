"""Frames from the archive's files, and files from frames.

Spark reads and writes the files itself, or, at URLs for which it has no connector, Arrow in Spark's
workers. Spark reaches `s3a://` by a Hadoop module missing in PySpark's wheel; Arrow needs none. It
is slower: all rows go through Python workers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import datasource as spark_source

from delivery.history.archive.archive import Archive
from delivery.history.archive.ledger import File
from delivery.history.schemas import BY_NAME, Column, Table, spark_schema
from delivery.history.spark.frames import frame_of_rows
from delivery.history.spark.workers import dealt_shares

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "inturn_files"
# Hadoop's error about an unknown scheme, or a scheme without a class.
_LACKING = ("ClassNotFoundException", "No FileSystem for scheme")
# A path in the archive, never to exist.
_NOWHERE = ".nowhere"


def read_files(
    spark: "SparkSession",
    archive: Archive,
    table: Table,
    files: Iterable[File],
    *,
    names: Sequence[str] = (),
) -> "DataFrame":
    """Return the rows of these files; without files, no rows. `names` are columns, all if none.

    A column missing in a file is null.
    """
    columns = [column for column in table.columns if not names or column.name in names]
    paths = [file.path for file in files]
    if not paths:
        return frame_of_rows(spark, columns, [])
    if not _is_reached_by(spark, archive):
        return frame_of_files(spark, archive, table, columns=columns, paths=paths)
    addresses = [archive.address(path) for path in paths]
    return spark.read.schema(spark_schema(columns)).parquet(*addresses)


def write_files(frame: "DataFrame", archive: Archive, folder: str) -> None:
    """Write a frame as Parquet files, in place of the folder's."""
    if _is_reached_by(frame.sparkSession, archive):
        frame.write.parquet(archive.address(folder), mode="overwrite")
    else:
        write_frame(frame, archive, folder)


def _is_reached_by(spark: "SparkSession", archive: Archive) -> bool:
    if archive.has_connector is None:
        archive.has_connector = has_connector(spark, archive.url)
    return archive.has_connector


def has_connector(spark: "SparkSession", url: str) -> bool:
    """Return whether Spark itself can read and write at the URL."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    try:
        # Of an existing folder Spark would list all files, and it refuses the archive's: they are
        # partitions of several tables.
        spark.read.schema("id BIGINT").parquet(f"{url}/{_NOWHERE}")
    except AnalysisException:
        return True
    except (PySparkException, Py4JJavaError) as error:
        if any(words in str(error) for words in _LACKING):
            return False
        raise
    return True


def frame_of_files(
    spark: "SparkSession",
    archive: Archive,
    table: Table,
    *,
    columns: Sequence[Column],
    paths: Sequence[str],
) -> "DataFrame":
    """Return these columns of the files' rows."""
    spark.dataSource.register(ArrowFiles)
    options = {
        "table": table.name,
        "columns": ", ".join(f"{column.name} {column.type}" for column in columns),
        "names": _json([column.name for column in columns]),
        "paths": _json(paths),
    }
    return spark.read.format(FORMAT).options(url=archive.url, **options).load()


def write_frame(frame: "DataFrame", archive: Archive, folder: str) -> None:
    """Write a Parquet file for each partition with rows; the folder has no others then."""
    frame.sparkSession.dataSource.register(ArrowFiles)
    archive.clear(folder)
    options = {"url": archive.url, "folder": folder}
    frame.write.format(FORMAT).mode("append").options(**options).save()


def _json(texts: Sequence[str]) -> str:
    return orjson.dumps(list(texts)).decode()


class ArrowFiles(spark_source.DataSource):
    """Options: `url` of the archive; `table`, `columns`, `names` and `paths`, or `folder`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return self.options["columns"]

    def reader(self, schema: Any) -> "ArrowReader":
        return ArrowReader(
            Archive(self.options["url"]),
            BY_NAME[self.options["table"]],
            names=orjson.loads(self.options["names"]),
            paths=orjson.loads(self.options["paths"]),
        )

    def writer(self, schema: Any, overwrite: bool) -> "ArrowWriter":
        return ArrowWriter(Archive(self.options["url"]), self.options["folder"])


class ArrowReader(spark_source.DataSourceReader):
    def __init__(
        self, archive: Archive, table: Table, *, names: Sequence[str], paths: Sequence[str]
    ) -> None:
        self._archive = archive
        self._table = table
        self._names = names
        self._paths = paths

    def partitions(self) -> Sequence[spark_source.InputPartition]:
        return [spark_source.InputPartition(share) for share in dealt_shares(self._paths)]

    def read(self, partition: spark_source.InputPartition) -> Iterator[pa.RecordBatch]:
        for path in partition.value:
            yield from self._archive.rows(self._table, path, self._names)


@dataclass(frozen=True)
class WrittenPath(spark_source.WriterCommitMessage):
    """The file of a partition; empty if it has no rows."""

    path: str


class ArrowWriter(spark_source.DataSourceArrowWriter):
    def __init__(self, archive: Archive, folder: str) -> None:
        self._archive = archive
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPath:
        """Write the rows of a partition into a file named as Spark names them."""
        from pyspark import TaskContext

        first = next(iterator, None)
        if first is None:
            return WrittenPath("")
        context = TaskContext.get()
        assert context is not None
        path = f"{self._folder}/part-{context.partitionId():05}-{token_hex(4)}.parquet"
        files = self._archive.files
        files.create_dir(self._archive.path(self._folder))
        with (
            files.open_output_stream(self._archive.path(path)) as sink,
            parquet.ParquetWriter(sink, first.schema, compression="zstd") as writer,
        ):
            for batch in chain([first], iterator):
                writer.write_batch(batch)
        return WrittenPath(path)

    def commit(self, messages: Sequence[spark_source.WriterCommitMessage | None]) -> None:
        """Remove the files of abandoned workers."""
        written = {message.path for message in messages if isinstance(message, WrittenPath)}
        for file in self._archive.parquet(self._folder):
            if (path := self._archive.relative(file.path)) not in written:
                self._archive.remove(path)
