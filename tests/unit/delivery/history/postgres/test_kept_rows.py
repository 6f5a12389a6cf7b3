"""A whole verify compares the archive with the rows that PostgreSQL still has.

Here somebody changes a file, and the ledger's sums to match: only PostgreSQL's rows show it.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pyarrow import Table as Rows
from pyarrow import parquet
from pyspark.sql import SparkSession

from delivery.history.archive import ledger
from delivery.history.archive.archive import Archive
from delivery.history.archive.file_sums import read_sums
from delivery.history.archive.losses import FileReport, look_at_folder, look_into_files
from delivery.history.job import StepJob
from delivery.history.schemas import BY_NAME, TABLES
from delivery.history.steps import kept_rows
from delivery.history.steps.kept_rows import compare_kept_rows
from delivery.lifecycle import transitions
from delivery.models import ArchiveChunk, ArchiveFile, Delivery, JournalEntry, JournalKind
from delivery.states import Status
from subscriptions.models import EventType, Publisher
from tests.support import factories
from tests.unit.delivery.history.exporting import settled
from tests.unit.delivery.history.local_jobs import export_to, local_job
from tests.unit.delivery.history.settlement_rows import resubmitted, try_once
from tests.unit.delivery.history.verify_runs import verified

pytestmark = pytest.mark.django_db(transaction=True)

Row = dict[str, Any]
Forgery = Callable[[list[Row]], object]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An archive of two days: deliveries of each kind, most with the attempt in their own row."""
    place = tmp_path / "archive"
    for days in (1, 2):
        for status in (Status.DELIVERED, Status.REJECTED, Status.FAILED):
            settled(status, days=days)
        at = timezone.now() - timedelta(days=days)
        settled(days=days, attempts=1, started_at=at, duration_ms=5, settled_at=at)
    JournalEntry.objects.create(kind=JournalKind.FAILED, text="FAILED after 3 attempts")
    export_to(place)
    return place


@contextmanager
def compared(place: Path) -> Iterator[tuple[StepJob, FileReport]]:
    """Yield the report of what a whole verify does with the files."""
    with local_job(place) as job:
        files = {table.name: ledger.files(job.database, table.name) for table in TABLES}
        report = look_at_folder(job.archive, job.database, files)
        look_into_files(job, report)
        compare_kept_rows(job, report, files, until=ledger.archived_until(job.database))
        yield job, report


def report_of(place: Path) -> FileReport:
    with compared(place) as (_, report):
        return report


def rows_there() -> int:
    return sum(ArchiveFile.objects.values_list("rows", flat=True))


def assert_sound(place: Path, *, uncompared: int = 0) -> None:
    report = report_of(place)
    assert (report.damages, report.losses) == ({}, [])
    assert (report.compared, report.uncompared) == (rows_there() - uncompared, uncompared)


def forge(place: Path, file: ArchiveFile, forgery: Forgery) -> None:
    """Change the rows of a file, and everything that the ledger knows of it."""
    path = place / file.path
    schema = parquet.read_schema(path)
    rows = parquet.read_table(path, schema=schema).to_pylist()
    count = len(rows)
    forgery(rows)
    parquet.write_table(Rows.from_pylist(rows, schema=schema), path, compression="zstd")
    sums = read_sums(Archive(str(place)), BY_NAME[file.table], file.path)
    assert sums.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    ArchiveFile.objects.filter(pk=file.pk).update(
        rows=len(rows),
        bytes=sums.bytes,
        sha256=sums.sha256,
        checksum=sums.fingerprint.checksum_text,
    )
    chunk = ArchiveChunk.objects.get(pk=file.chunk_id)
    chunk.counts[file.table] += len(rows) - count
    chunk.save()


def changed(column: str, value: object) -> Forgery:
    """Change the last row's value."""
    return lambda rows: rows[-1].update({column: value})


def added(**values: object) -> Forgery:
    return lambda rows: rows.append(rows[-1] | values)


def rejected_as_delivered(rows: list[Row]) -> None:
    for row in rows:
        row["status"] = row["status"].replace("REJECTED", "DELIVERED")


def test_a_sound_archive_is_equal_to_postgresql(place: Path) -> None:
    assert rows_there() > 20
    assert_sound(place)


FORGERIES: list[tuple[str, Forgery]] = [
    ("deliveries", rejected_as_delivered),
    ("deliveries", changed("body_bytes", 7)),
    ("deliveries", changed("subscription_id", 1_000_000)),
    ("deliveries", lambda rows: rows[0].update(settled_at=rows[0]["settled_at"] + timedelta(1))),
    ("messages", changed("body", b"another one")),
    ("messages", changed("headers", "{}")),
    ("messages", changed("owed", 7)),
    ("attempts", changed("status_code", 299)),
    ("attempts", changed("error", "said no")),
    ("journal", changed("text", "nothing happened")),
    ("journal", changed("actor", "ann")),
]


@pytest.mark.parametrize(("table", "forgery"), FORGERIES)
@pytest.mark.parametrize("has_sums", [True, False])
def test_a_forged_file_is_found_though_its_sums_are_forged_or_missing(
    place: Path, table: str, forgery: Forgery, *, has_sums: bool
) -> None:
    file = ArchiveFile.objects.filter(table=table).earliest("pk")
    forge(place, file, forgery)
    if not has_sums:
        ArchiveFile.objects.filter(pk=file.pk).update(sha256="", checksum="")
    report = report_of(place)
    assert list(report.damages) == [file.path]
    assert report.damages[file.path].startswith(f"{file.path} of the archive has other values")
    assert file.path not in {sound_file.path for sound_file in report.sound[table]}
    assert report.losses == []


@pytest.mark.parametrize(
    ("table", "forgery"),
    [("attempts", added(number=9)), ("deliveries", added(settled_before=3, status="REJECTED"))],
)
def test_an_added_row_of_a_delivery_that_postgresql_has_is_found(
    place: Path, table: str, forgery: Forgery
) -> None:
    file = ArchiveFile.objects.filter(table=table).earliest("pk")
    forge(place, file, forgery)
    report = report_of(place)
    (words,) = report.damages.values()
    assert words.startswith(f"{file.path} of the archive has 1 rows of {table}")
    assert "which PostgreSQL has not" in words


@pytest.mark.parametrize("table", ["messages", "deliveries", "attempts", "journal"])
def test_a_removed_row_is_found(place: Path, table: str) -> None:
    file = ArchiveFile.objects.filter(table=table).latest("pk")
    removed: list[Row] = []
    forge(place, file, lambda rows: removed.append(rows.pop(len(rows) // 2)))
    report = report_of(place)
    assert report.damages == {}
    (words,) = report.losses
    assert str(removed[0][BY_NAME[table].key[0]]) in words
    assert words.endswith("which PostgreSQL has.")
    assert words.startswith(f"{file.path} of the archive lacks 1 rows")


def test_rows_that_postgresql_has_no_more_are_no_finding(place: Path) -> None:
    row = Delivery.objects.filter(status=Status.REJECTED).earliest("pk")
    with connection.cursor() as cursor:
        for statement in (
            "DELETE FROM delivery_settled WHERE id = %s",
            "DELETE FROM delivery_loggedattempt WHERE delivery_id = %s",
            "DELETE FROM delivery_message WHERE id = %s >> 20",
        ):
            cursor.execute(statement, [row.pk])
    assert_sound(place, uncompared=3)


def test_names_and_references_may_change_after_the_export(place: Path) -> None:
    original = factories.message()
    factories.message(edited_from=original)
    factories.message(publisher=factories.publisher("old"))
    JournalEntry.objects.create(
        kind=JournalKind.BLOCKED, text="blocked", lane_id=factories.subscriber().lane.pk
    )
    export_to(place)
    EventType.objects.filter(pk=original.event_type_id).update(name="Renamed.Event")
    Publisher.objects.filter(name="old").update(name="new")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE delivery_message SET edited_from_id = NULL")
    assert_sound(place)


def test_settlements_that_follow_an_export_are_no_finding(place: Path) -> None:
    """A person sends a delivery again, and another attempt ends after the cancellation."""
    again = Delivery.objects.filter(status=Status.REJECTED).earliest("pk")
    late = settled(Status.PENDING, days=0)
    transitions.cancel_deliveries([late.pk], actor="ann")
    export_to(place)
    resubmitted(again)
    assert_sound(place)
    try_once(again, Status.DELIVERED)
    assert_sound(place)
    try_once(late, Status.DELIVERED)
    # PostgreSQL has only the amended settlement now.
    assert_sound(place, uncompared=1)
    export_to(place)
    assert_sound(place, uncompared=1)


def test_parts_by_ids_and_days_have_the_same_rows(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        try_once(settled(Status.PENDING, days=0), Status.FAILED)
        export_to(place)
    monkeypatch.setattr(kept_rows, "_ROWS_A_PART", 2)
    assert_sound(place)
    file = ArchiveFile.objects.filter(table="deliveries").latest("pk")
    forge(place, file, changed("reason", "forged"))
    assert list(report_of(place).damages) == [file.path]


def test_rows_from_before_the_watermark_that_were_never_archived_are_found(place: Path) -> None:
    delivery = settled(days=1.5)
    report = report_of(place)
    assert any(f"({delivery.pk})" in words for words in report.losses)
    assert any(f"({delivery.message_id})" in words for words in report.losses)


def test_rows_of_a_lost_file_are_not_reported_once_more(place: Path) -> None:
    file = ArchiveFile.objects.filter(table="deliveries").earliest("pk")
    (place / file.path).unlink()
    report = report_of(place)
    assert (list(report.damages), report.losses) == ([file.path], [])


def test_a_file_without_sums_is_proven_by_postgresql_alone(place: Path) -> None:
    ArchiveFile.objects.update(sha256="", checksum="")
    report = report_of(place)
    assert (report.unproven, report.limits) == (0, "")
    JournalEntry.objects.all().delete()
    report = report_of(place)
    assert report.unproven == 1
    assert "without the content of 1 files" in report.limits


@pytest.mark.slow
def test_a_whole_verify_says_what_it_has_compared_and_what_is_not_proven(
    place: Path, spark: SparkSession
) -> None:
    result = verified(place, spark, whole=True)
    assert (result["verdict"], result["covers"]) == ("proven", "the whole history")
    assert (result["rows_equal_to_postgresql"], result["rows_only_archived"]) == (rows_there(), 0)
    ArchiveFile.objects.filter(table="journal").update(sha256="", checksum="")
    JournalEntry.objects.all().delete()
    result = verified(place, spark, whole=True)
    assert result["rows_only_archived"] == 1
    assert result["covers"].startswith("the whole history, without the content of 1 files")
    file = ArchiveFile.objects.filter(table="deliveries").earliest("pk")
    forge(place, file, rejected_as_delivered)
    result = verified(place, spark, whole=True)
    assert (result["verdict"], result["damaged_files"]) == ("broken here", [file.path])
