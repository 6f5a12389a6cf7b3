"""Each damage to the archive is found, and the file named, by what `verify --whole` does."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from delivery.history.archive import ledger
from delivery.history.archive.ledger import File
from delivery.history.archive.losses import FileReport, look_at_folder, look_into_files
from delivery.history.job import StepJob
from delivery.history.schemas import TABLES
from delivery.models import ArchiveFile, JournalEntry, JournalKind
from tests.support import factories
from tests.unit.delivery.history.damaging import Damager
from tests.unit.delivery.history.exporting import settled
from tests.unit.delivery.history.local_jobs import export_to, local_job

pytestmark = pytest.mark.django_db(transaction=True)

SEED = 20_261_128


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An archive of ten days."""
    place = tmp_path / "archive"
    for days in range(1, 11):
        for _ in range(3):
            settled(days=days, attempts=2)
        at = timezone.now() - timedelta(days=days)
        entry = JournalEntry.objects.create(kind=JournalKind.FAILED, text=f"{days} days ago")
        JournalEntry.objects.filter(pk=entry.pk).update(at=at)
    factories.message()
    export_to(place)
    assert ArchiveFile.objects.count() > 25
    return place


@pytest.fixture
def job(place: Path) -> Iterator[StepJob]:
    with local_job(place) as given:
        yield given


@pytest.fixture
def damager() -> Damager:
    return Damager(random.Random(SEED))


def looked(job: StepJob, files: list[File] | None = None) -> FileReport:
    """Look as a whole verify does, into these files or all."""
    known = {table.name: ledger.files(job.database, table.name) for table in TABLES}
    report = look_at_folder(job.archive, job.database, known)
    if files is not None:
        report.sound = {
            table: [file for file in found if file in files]
            for table, found in report.sound.items()
        }
    look_into_files(job, report)
    return report


@contextmanager
def mended(*files: Path) -> Iterator[None]:
    contents = [file.read_bytes() for file in files]
    yield
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)


def all_files(job: StepJob) -> list[File]:
    return [file for table in TABLES for file in ledger.files(job.database, table.name)]


def test_a_sound_archive_has_none(job: StepJob) -> None:
    report = looked(job)
    assert (report.damages, report.strangers, report.later, report.unproven) == ({}, [], [], 0)
    assert report.checked == len(all_files(job))


@pytest.mark.timeout(300)
def test_each_is_found_and_the_file_named(job: StepJob, place: Path, damager: Damager) -> None:
    """200 flipped bytes, 50 rewritten files, 50 swaps, 50 losses and 50 cut files."""
    files = all_files(job)
    kinds = (
        (200, damager.flip_a_byte),
        (50, damager.rewrite),
        (50, damager.lose),
        (50, damager.truncate),
    )
    for count, damage in kinds:
        for _ in range(count):
            file = damager.chance.choice(files)
            with mended(place / file.path):
                damage(place / file.path)
                found = looked(job, [file])
                assert list(found.damages) == [file.path], damage.__name__
                assert file.path in found.damages[file.path]
    for _ in range(50):
        pair = damager.chance.sample(files, 2)
        paths = [place / file.path for file in pair]
        if paths[0].read_bytes() == paths[1].read_bytes():
            continue
        with mended(*paths):
            damager.swap(*paths)
            assert looked(job, pair).damages.keys() == {file.path for file in pair}
    assert looked(job).damages == {}


def test_a_swap_of_files_of_one_size_names_whose_content_it_is(
    job: StepJob, place: Path, damager: Damager
) -> None:
    by_size: dict[int, File] = {}
    pair = next(
        (file, by_size[file.bytes])
        for file in ledger.files(job.database, "messages")
        if by_size.setdefault(file.bytes, file) is not file
    )
    damager.swap(*(place / file.path for file in pair))
    assert looked(job).damages == {
        file.path: f"{file.path} of the archive has the content of {other.path}."
        for file, other in (pair, pair[::-1])
    }


def test_strangers_are_named_and_no_damage(job: StepJob, place: Path, damager: Damager) -> None:
    copies = []
    for number in range(10):
        file = damager.chance.choice(all_files(job))
        copy = (place / file.path).with_name(f"copy {number}.parquet")
        copy.write_bytes((place / file.path).read_bytes())
        copies.append(str(copy.relative_to(place)))
    report = looked(job)
    assert (report.damages, report.later) == ({}, [])
    assert [text.partition(".parquet")[0] + ".parquet" for text in report.strangers] == sorted(
        copies
    )


def test_files_of_exports_after_a_backup_are_told_from_strangers(job: StepJob, place: Path) -> None:
    file = all_files(job)[0]
    later = (place / file.path).with_name("1000017-00003.parquet")
    later.write_bytes((place / file.path).read_bytes())
    report = looked(job)
    assert (report.damages, report.strangers) == ({}, [])
    (text,) = report.later
    assert text.startswith(str(later.relative_to(place)))
    assert "as after a restore from a back-up" in text


def test_a_file_whose_checksums_were_not_kept_counts_as_unproven(
    job: StepJob, place: Path, damager: Damager
) -> None:
    """Its rows must still be readable, and as many as were exported."""
    file = all_files(job)[0]
    ArchiveFile.objects.filter(pk=file.id).update(sha256="", checksum="")
    report = looked(job)
    assert (report.damages, report.unproven) == ({}, 1)
    content = (place / file.path).read_bytes()
    (place / file.path).write_bytes(content[:4] + bytes(len(content) - 8) + content[-4:])
    assert "cannot be read" in looked(job).damages[file.path]
