"""The archive where Spark has no connector: Arrow reads and writes the same rows."""

from pathlib import Path

import pytest
from pyarrow import fs, parquet
from pyspark.sql import SparkSession

from delivery.history.archive import arrow_files
from delivery.history.archive.archive import Archive
from delivery.history.archive.small_files import ArchiveError
from delivery.history.schemas import MESSAGES
from tests.support import ci_tools
from tests.support.s3_server import BUCKET, s3_server
from tests.unit.delivery.history.archived import AT, frame, message

ROWS = [message(1), message(2, publisher=None), message(3)]


def test_the_wheel_of_spark_has_no_connector_for_s3(tmp_path: Path, spark: SparkSession) -> None:
    assert not arrow_files.has_connector(spark, "s3a://bucket/inturn")
    assert not arrow_files.has_connector(spark, "gs://bucket/inturn")
    assert arrow_files.has_connector(spark, f"file://{tmp_path}")
    assert arrow_files.has_connector(spark, f"file://{tmp_path}/not-there")
    # Spark alone cannot read the root of an archive: its folders are partitions of several tables.
    for table in ("messages", "deliveries"):
        folder = tmp_path / table / "day=2026-11-22"
        folder.mkdir(parents=True)
        (folder / "1-00000.parquet").touch()
    assert arrow_files.has_connector(spark, f"file://{tmp_path}")


def test_rows_are_written_and_read_as_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    archive = Archive(str(tmp_path))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "part-00000-of-a-killed-worker.parquet").touch()
    rows = frame(spark, MESSAGES, ROWS).repartitionByRange(2, "id")
    arrow_files.write_frame(rows, archive, "folder")
    paths = [archive.relative(file.path) for file in archive.parquet("folder")]
    assert [path[:17] for path in paths] == ["folder/part-00000", "folder/part-00001"]
    by_spark = spark.read.schema(MESSAGES.spark).parquet(*map(archive.address, paths))
    by_arrow = arrow_files.frame_of_files(
        spark, archive, MESSAGES, columns=MESSAGES.columns, paths=paths
    )
    assert by_arrow.schema == by_spark.schema
    assert by_arrow.orderBy("id").collect() == by_spark.orderBy("id").collect()
    some = [column for column in MESSAGES.columns if column.name in {"id", "publisher"}]
    only = arrow_files.frame_of_files(spark, archive, MESSAGES, columns=some, paths=paths)
    assert sorted(map(tuple, only.collect())) == [(1, "test"), (2, None), (3, "test")]


@pytest.mark.skipif(bool(ci_tools.MISSING), reason=ci_tools.MISSING)
def test_files_are_moved_listed_and_removed_on_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        archive = Archive(f"s3a://{BUCKET}/inturn")
        staged, path = ".staging/1/part.parquet", f"messages/day={AT.date()}/1-00000.parquet"
        table = MESSAGES.arrow.empty_table().from_pylist(ROWS, schema=MESSAGES.arrow)
        parquet.write_table(table, archive.path(staged), filesystem=archive.files)
        # Idempotent, so that a killed run can be repeated.
        for _ in range(2):
            archive.move(staged, path)
        archive.clear(".staging")
        assert [archive.relative(file.path) for file in archive.parquet("messages")] == [path]
        (batch,) = archive.rows(MESSAGES, path, ["id", "published_at"])
        assert batch.column("id").to_pylist() == [1, 2, 3]
        for _ in range(2):
            archive.remove(path)
        assert archive.parquet("messages") == []
        with pytest.raises(ArchiveError):
            archive.move(staged, path)
        assert archive.files.get_file_info(archive.path(path)).type == fs.FileType.NotFound
