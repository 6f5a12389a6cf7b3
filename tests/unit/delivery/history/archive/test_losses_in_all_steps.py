"""Runs on real Spark over a damaged archive: findings name the file, and other work goes on."""

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pyspark.sql import SparkSession

from delivery.history.archive.small_files import ArchiveError
from delivery.history.steps.effect import measure_effect
from delivery.history.steps.report import write_report
from delivery.history.steps.rollup import measure_hours
from delivery.models import ArchiveChunk, ArchiveFile, Finding, HistoryHour
from tests.unit.delivery.history import archived
from tests.unit.delivery.history.archived import entry, seconds, write
from tests.unit.delivery.history.damaging import Damager
from tests.unit.delivery.history.exporting import settled
from tests.unit.delivery.history.local_jobs import export_to
from tests.unit.delivery.history.verify_runs import check, sound_rows, verified

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An archive of two days, of which nothing else is wrong."""
    place = tmp_path / "archive"
    for days in (1, 2):
        for _ in range(3):
            delivered(days)
    export_to(place)
    return place


def delivered(days: float) -> None:
    """Create a delivery that was sent and settled so many days ago."""
    at = timezone.now() - timedelta(days=days)
    settled(days=days, attempts=1, started_at=at, duration_ms=5, settled_at=at)


@pytest.fixture
def damager() -> Damager:
    return Damager(random.Random(7))


def file_of(place: Path, table: str) -> Path:
    return place / ArchiveFile.objects.filter(table=table).earliest("pk").path


def texts(kind: str = "FILES") -> list[str]:
    return list(Finding.objects.filter(kind=kind).values_list("text", flat=True))


Damage = Callable[[Damager, Path], None]


def swapped(damager: Damager, file: Path) -> None:
    (other,) = set(file.parent.parent.rglob("*.parquet")) - {file}
    damager.swap(file, other)


WHOLE: list[tuple[str, Damage]] = [
    ("messages", Damager.flip_a_byte),
    ("deliveries", Damager.rewrite),
    ("attempts", swapped),
    ("messages", Damager.lose),
    ("attempts", Damager.truncate),
]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "damage"), WHOLE)
def test_a_whole_verify_names_the_file_and_makes_all_other_checks(
    place: Path, spark: SparkSession, damager: Damager, table: str, damage: Damage
) -> None:
    assert verified(place, spark, whole=True)["verdict"] == "proven"
    file = file_of(place, table)
    damage(damager, file)
    result = verified(place, spark, whole=True)
    assert result["verdict"] == "broken here"
    assert str(file.relative_to(place)) in result["damaged_files"]
    assert any(str(file.relative_to(place)) in text for text in texts())
    assert check(result, "FILES")["checked"] == ArchiveFile.objects.count()
    assert any(
        check_result["checked"]
        for check_result in result["checks"]
        if check_result["kind"] != "FILES"
    )
    assert "proof" not in result


@pytest.mark.slow
def test_a_whole_verify_names_strangers(place: Path, spark: SparkSession) -> None:
    file = file_of(place, "deliveries")
    copy = file.with_name("1-00001-copy.parquet")
    copy.write_bytes(file.read_bytes())
    result = verified(place, spark, whole=True)
    assert (result["verdict"], check(result, "FILES")["broken"]) == ("broken here", 1)
    (text,) = texts()
    assert text.startswith(str(copy.relative_to(place)))


@pytest.mark.slow
def test_files_of_exports_after_a_backup_are_findings_and_no_damage(
    place: Path, spark: SparkSession
) -> None:
    file = file_of(place, "deliveries")
    file.with_name("1000017-00000.parquet").write_bytes(file.read_bytes())
    result = verified(place, spark, whole=True)
    assert result["verdict"] == "proven"
    assert check(result, "FILES")["explained"]["of_exports_after_the_backup"] == 1
    assert "as after a restore" in texts()[0]


@pytest.mark.slow
@pytest.mark.parametrize("has_new_rows", [True, False])
@pytest.mark.parametrize("damage", [Damager.lose, Damager.truncate])
def test_a_daily_verify_reports_lost_and_cut_files(
    place: Path, spark: SparkSession, damager: Damager, damage: Damage, *, has_new_rows: bool
) -> None:
    assert verified(place, spark)["verdict"] == "proven"
    if has_new_rows:
        delivered(0)
        export_to(place)
    file = file_of(place, "attempts")
    damage(damager, file)
    result = verified(place, spark)
    assert result["verdict"] == "broken here"
    assert result["damaged_files"] == [str(file.relative_to(place))]
    assert str(file.relative_to(place)) in result["covers"]


@pytest.mark.slow
def test_a_daily_verify_reports_a_file_that_it_cannot_read(
    place: Path, spark: SparkSession
) -> None:
    """Of the same size: only reading it shows the damage."""
    assert verified(place, spark)["verdict"] == "proven"
    delivered(0)
    export_to(place)
    file = place / ArchiveFile.objects.filter(table="attempts").latest("pk").path
    ruined(file)
    result = verified(place, spark)
    assert result["damaged_files"] == [str(file.relative_to(place))]


def ruined(file: Path) -> None:
    """Overwrite all pages of rows; the footer stays."""
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:4] + bytes(len(content) - 4 - footer) + content[-footer:])


class TestRollupWithoutFiles:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        rows = sound_rows(range(1, 6))
        write(tmp_path, **rows, journal=[entry(1, "BLOCKED", lane_id=1, subscription_id=1)])
        return tmp_path

    @pytest.mark.parametrize("damage", [Path.unlink, ruined])
    @pytest.mark.parametrize("table", ["attempts", "journal"])
    def test_goes_on_without_a_file_and_says_so(
        self, folder: Path, spark: SparkSession, table: str, damage: Callable[[Path], None]
    ) -> None:
        file = file_of(folder, table)
        content = file.read_bytes()
        damage(file)
        with archived.job(folder, spark=spark) as job:
            result = measure_hours(job)
        (without,) = result["without"]
        assert without.startswith(str(file.relative_to(folder)))
        assert HistoryHour.objects.get().delivered == 5
        # What lacks rows is measured again, until the file is back.
        assert ArchiveChunk.objects.get().is_rolled_up == (table == "journal")
        file.write_bytes(content)
        with archived.job(folder, spark=spark) as job:
            assert "without" not in measure_hours(job)
        assert ArchiveChunk.objects.get().is_rolled_up

    def test_of_a_sound_archive_says_nothing_of_it(self, folder: Path, spark: SparkSession) -> None:
        with archived.job(folder, spark=spark) as job:
            assert "without" not in measure_hours(job)


class TestReportWithoutFiles:
    @pytest.mark.slow
    @pytest.mark.parametrize("damage", [Path.unlink, ruined])
    @pytest.mark.parametrize("table", ["attempts", "messages", "deliveries"])
    def test_goes_on_without_a_file_and_says_so(
        self, tmp_path: Path, spark: SparkSession, table: str, damage: Callable[[Path], None]
    ) -> None:
        write(tmp_path, **sound_rows(range(1, 6)))
        file = file_of(tmp_path, table)
        damage(file)
        with archived.job(tmp_path, spark=spark) as job:
            result = write_report(
                job,
                since=seconds(0).isoformat(),
                until=seconds(1000).isoformat(),
                to=str(tmp_path),
            )
        (without,) = result["without"]
        assert without.startswith(str(file.relative_to(tmp_path)))
        assert result["rows"] == (0 if table == "deliveries" else 5)


def test_an_effect_is_not_measured_without_a_file(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, **sound_rows(range(1, 6)))
    file = file_of(tmp_path, "messages")
    file.unlink()
    change = {"subscription": "a/b", "event_type": "Test.Event", "before": None, "after": ["", ""]}
    with (
        archived.job(tmp_path, spark=spark) as job,
        pytest.raises(ArchiveError, match=f"{file.name} of the archive.*is not there"),
    ):
        measure_effect(job, since=seconds(0).isoformat(), changes=[change])
