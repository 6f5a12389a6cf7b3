"""Compaction: many small files of a day become one, with the same rows."""

import random
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delivery.history.archive import ledger
from delivery.history.archive.file_sums import read_sums
from delivery.history.archive.ledger import files
from delivery.history.archive.losses import damage_of
from delivery.history.job import StepJob
from delivery.history.schemas import MESSAGES
from delivery.history.steps.compaction import compact_files
from delivery.history.steps.export import export_history
from delivery.models import ArchiveChunk, ArchiveFile
from tests.unit.delivery.history import archived
from tests.unit.delivery.history.damaging import Damager

pytestmark = pytest.mark.django_db(transaction=True)


def ids(job: StepJob) -> list[int]:
    frame = job.read_files(MESSAGES, files(job.database, MESSAGES.name))
    return [row["id"] for row in frame.select("id").orderBy("id").collect()]


def on_disk(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.glob("messages/*/*.parquet"))


@pytest.fixture
def in_three_files(tmp_path: Path) -> Path:
    for id in (1, 2, 3):
        archived.write(tmp_path, messages=[archived.message(id)])
    return tmp_path


@pytest.mark.slow
def test_small_files_of_a_day_become_one(in_three_files: Path, spark: SparkSession) -> None:
    with archived.job(in_three_files, spark=spark) as job:
        assert compact_files(job, many=3) == 3
        assert ids(job) == [1, 2, 3]
    (path,) = on_disk(in_three_files)
    assert ArchiveFile.objects.get().path == path


@pytest.mark.slow
def test_each_day_keeps_its_own(tmp_path: Path, spark: SparkSession) -> None:
    days = [
        archived.message(id, published_at=archived.AT + timedelta(days=id % 2, seconds=id))
        for id in range(1, 5)
    ]
    for row in days:
        archived.write(tmp_path, messages=[row])
    with archived.job(tmp_path, spark=spark) as job:
        assert compact_files(job, many=2) == 4
        assert ids(job) == [1, 2, 3, 4]
        assert [file.rows for file in files(job.database, "messages")] == [2, 2]


def test_a_few_files_are_left_as_they_are(in_three_files: Path) -> None:
    before = on_disk(in_three_files)
    with archived.job(in_three_files, spark=None) as job:  # type: ignore[arg-type]
        assert compact_files(job, many=4) == 0
    assert on_disk(in_three_files) == before


def test_files_read_by_a_run_are_not_removed(in_three_files: Path, spark: SparkSession) -> None:
    before = on_disk(in_three_files)
    with archived.job(in_three_files, spark=spark) as job:
        with archived.job(in_three_files, spark=spark) as reading:
            ledger.read_files(
                reading.database, before_waiting=lambda: pytest.fail("nobody compacts yet")
            )
            assert compact_files(job, many=3) == 0
            assert on_disk(in_three_files) == before
            # As the end of its connection does, a moment later.
            reading.database.execute("SELECT pg_advisory_unlock_all()")
        assert compact_files(job, many=3) == 3


def test_files_left_by_a_crash_are_removed_by_the_next_export(
    in_three_files: Path, spark: SparkSession
) -> None:
    before = {path: (in_three_files / path).read_bytes() for path in on_disk(in_three_files)}
    rows = list(ArchiveFile.objects.order_by("pk"))
    with archived.job(in_three_files, spark=spark) as job:
        compact_files(job, many=3)
        # As after a kill just after the new file was published.
        for row in rows:
            row.replaced_by_id = ArchiveFile.objects.get(replaced_by=None).chunk_id
            row.save(force_insert=True)
            (in_three_files / row.path).write_bytes(before[row.path])
        assert ids(job) == [1, 2, 3]
        export_history(job)
        assert ids(job) == [1, 2, 3]
    assert len(on_disk(in_three_files)) == 1


@pytest.mark.slow
def test_the_new_file_has_sums_in_the_ledger(in_three_files: Path, spark: SparkSession) -> None:
    with archived.job(in_three_files, spark=spark) as job:
        compact_files(job, many=3)
        (file,) = files(job.database, MESSAGES.name)
        sums = read_sums(job.archive, MESSAGES, file.path)
        assert (file.sha256, file.checksum) == (sums.sha256, sums.fingerprint.checksum_text)
        assert damage_of(file, sums) == ""


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [True, False])
def test_damage_is_not_merged_into_a_file_that_looks_sound(
    in_three_files: Path, spark: SparkSession, *, is_lost: bool
) -> None:
    with archived.job(in_three_files, spark=spark) as job:
        for file in files(job.database, MESSAGES.name):
            sums = read_sums(job.archive, MESSAGES, file.path)
            ArchiveFile.objects.filter(pk=file.id).update(
                sha256=sums.sha256, checksum=sums.fingerprint.checksum_text
            )
        path = in_three_files / on_disk(in_three_files)[0]
        if is_lost:
            path.unlink()
        else:
            Damager(random.Random(3)).rewrite(path)
        assert compact_files(job, many=3) == 0
        assert len(files(job.database, MESSAGES.name)) == 3
        assert not ArchiveChunk.objects.filter(kind="COMPACTION").exists()
