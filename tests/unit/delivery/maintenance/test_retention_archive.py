"""Retention removes no row that the archive at HISTORY_URL does not have.

Each pass runs a hundred days ahead, so that everything is old enough. Whatever has become of the
archive, its messages and those of PostgreSQL are all messages there were.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pyarrow import parquet
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.api.retention import RetentionRunSerializer
from delivery.console.retention.page import read_retention_page
from delivery.history.archive import small_files
from delivery.history.archive.small_files import ArchiveError
from delivery.management.doctor.archive import check_archive
from delivery.management.doctor.findings import Severity
from delivery.models import (
    ArchiveFile,
    Delivery,
    JournalEntry,
    JournalKind,
    Message,
    MessageRange,
    RetentionRun,
)
from tests.support import factories
from tests.unit.delivery.history.local_jobs import export_to
from tests.unit.delivery.maintenance.ranged import go_on_from, range_of
from tests.unit.delivery.maintenance.retaining import old, past, run_whole

pytestmark = pytest.mark.django_db(transaction=True)

AHEAD = timedelta(days=100)
IDENTITY = "_inturn.json"


@dataclass(frozen=True, slots=True)
class DaysOfHistory:
    """Messages of two days, archived in `place`: those of the newer day are in a whole range."""

    place: Path
    older: frozenset[int]
    newer: frozenset[int]

    @property
    def every(self) -> frozenset[int]:
        return self.older | self.newer

    def stored(self) -> frozenset[int]:
        """Return the messages that PostgreSQL has with a delivery and its attempt."""
        with_delivery = set(Delivery.objects.values_list("message_id", flat=True))
        return frozenset(with_delivery) & set(Message.objects.values_list("pk", flat=True))

    def archived(self) -> frozenset[int]:
        """Return the messages that a reader finds at the place, with a delivery and an attempt."""
        found = [self._ids(table) for table in ("messages", "deliveries", "attempts")]
        return frozenset.intersection(*found)

    def _ids(self, table: str) -> frozenset[int]:
        ids: set[int] = set()
        for file in self.place.glob(f"{table}/*/*.parquet"):
            try:
                rows = parquet.ParquetFile(file).read()
            except (OSError, ValueError):
                continue
            name = "id" if table == "messages" else "message_id"
            ids |= set(rows.column(name).to_pylist())
        return self.every & ids

    def passed(self) -> RetentionRun:
        return run_whole(timezone.now() + AHEAD)


@pytest.fixture
def history(tmp_path: Path, settings: Settings) -> DaysOfHistory:
    place = tmp_path / "archive"
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=str(place))
    go_on_from(MessageRange.objects.earliest("first_id").first_id + 1)
    subscription = factories.subscription()
    # In the default partition, and one by one.
    older = [
        old(subscription=subscription, days=20, attempts=1, started_at=past(20)) for _ in range(3)
    ]
    with range_of():
        newer = [
            old(subscription=subscription, days=10, attempts=1, started_at=past(10))
            for _ in range(3)
        ]
    entry = JournalEntry.objects.create(kind=JournalKind.FAILED, text="it failed")
    JournalEntry.objects.filter(pk=entry.pk).update(at=past(10))
    export_to(place)
    assert ArchiveFile.objects.count() == 7
    return DaysOfHistory(
        place,
        frozenset(row.message_id for row in older),
        frozenset(row.message_id for row in newer),
    )


def unmounted(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))


def emptied(place: Path) -> None:
    shutil.rmtree(place)
    place.mkdir()


def emptied_but_for_the_identity(place: Path) -> None:
    for table in ("messages", "deliveries", "attempts"):
        shutil.rmtree(place / table)


def another(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.mkdir()
    (place / IDENTITY).write_text('{"archive": "6a0ff1c5-3f43-4d6e-8d1f-9b7c4d2c3f11"}')


def a_copy_with_another_identity_and_no_older_day(place: Path) -> None:
    another(place)
    for table in ("messages", "deliveries", "attempts"):
        newest = max((place.with_name("elsewhere") / table).iterdir())
        shutil.copytree(newest, place / table / newest.name)


def without_its_identity(place: Path) -> None:
    (place / IDENTITY).unlink(missing_ok=True)
    emptied_but_for_the_identity(place)


def with_a_damaged_identity(place: Path) -> None:
    (place / IDENTITY).write_text("{")


def a_file_in_its_place(place: Path) -> None:
    unmounted(place)
    place.write_text("")


WRONG = [
    unmounted,
    emptied,
    emptied_but_for_the_identity,
    another,
    a_copy_with_another_identity_and_no_older_day,
    without_its_identity,
    with_a_damaged_identity,
    a_file_in_its_place,
]


class TestWrongPlaces:
    @pytest.mark.parametrize("spoil", WRONG)
    def test_cost_no_message(self, history: DaysOfHistory, spoil: Callable[[Path], None]) -> None:
        spoil(history.place)
        run = history.passed()
        assert history.stored() | history.archived() == history.every
        assert run.messages == 0
        assert str(history.place) in run.kept_because
        kept = JournalEntry.objects.get(kind=JournalKind.REMOVED)
        assert run.kept_because in kept.text

    @pytest.mark.parametrize("url", ["relative/archive", "file:///nowhere/archive"])
    def test_another_setting_costs_no_message(
        self, history: DaysOfHistory, settings: Settings, url: str
    ) -> None:
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=url)
        run = history.passed()
        assert (history.stored(), run.messages) == (history.every, 0)
        assert "no archive is there" in run.kept_because

    @pytest.mark.parametrize("spoil", [unmounted, emptied, another, with_a_damaged_identity])
    def test_no_export_writes_there(
        self, history: DaysOfHistory, spoil: Callable[[Path], None]
    ) -> None:
        spoil(history.place)
        factories.message(published_at=timezone.now() - timedelta(hours=1))
        before = sorted(history.place.rglob("*"))
        with pytest.raises(ArchiveError):
            export_to(history.place)
        assert sorted(history.place.rglob("*")) == before

    def test_a_storage_that_never_answers_is_not_waited_for(
        self, history: DaysOfHistory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A named pipe blocks its reader, as a hard mount without its server does."""
        identity = history.place / IDENTITY
        content = identity.read_bytes()
        identity.unlink()
        os.mkfifo(identity)
        monkeypatch.setattr(small_files, "ANSWER_SECONDS", 0.2)
        run = history.passed()
        assert "does not answer" in run.kept_because
        assert (history.stored(), run.messages) == (history.every, 0)
        # The thread that still waits gets its answer, and the next pass asks again.
        identity.write_bytes(content)
        identity.unlink()
        identity.write_bytes(content)
        small_files._unanswered[str(history.place)].ended.wait()
        assert history.passed().messages == len(history.every)


class TestRightPlaces:
    def test_have_all_that_is_removed(self, history: DaysOfHistory) -> None:
        run = history.passed()
        assert (history.stored(), history.archived()) == (frozenset(), history.every)
        assert (run.messages, run.kept_because) == (len(history.every), "")

    def test_may_be_copies_elsewhere(self, history: DaysOfHistory, settings: Settings) -> None:
        moved = history.place.with_name("moved")
        shutil.copytree(history.place, moved)
        shutil.rmtree(history.place)
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=str(moved))
        assert history.passed().messages == len(history.every)

    def test_may_be_reached_by_a_url(self, history: DaysOfHistory, settings: Settings) -> None:
        url = f"file://{history.place}"
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=url)
        assert history.passed().messages == len(history.every)


@pytest.fixture(params=["messages", "deliveries", "attempts"])
def table(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class TestDamagedFiles:
    @pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "truncated"])
    @pytest.mark.parametrize("is_older", [True, False], ids=["row by row", "whole range"])
    def test_keep_the_messages_of_their_file_alone(
        self, history: DaysOfHistory, table: str, *, is_older: bool, is_lost: bool
    ) -> None:
        day = sorted(path for path in (history.place / table).iterdir())[0 if is_older else -1]
        (file,) = day.iterdir()
        content = file.read_bytes()
        file.unlink()
        if not is_lost:
            file.write_bytes(content[:-1])
        run = history.passed()
        kept = history.older if is_older else history.newer
        assert history.stored() == kept
        assert file.name in run.kept_because
        assert history.stored() | history.archived() == history.every
        file.write_bytes(content)
        assert history.passed().messages == len(kept)
        assert history.archived() == history.every

    def test_of_the_journal_keep_its_entries(self, history: DaysOfHistory) -> None:
        (file,) = history.place.glob("journal/*/*.parquet")
        aside = file.rename(history.place / "aside")
        run = run_whole(timezone.now() + timedelta(days=400))
        assert file.name in run.kept_because
        assert JournalEntry.objects.filter(kind=JournalKind.FAILED).exists()
        # Their messages are in files that are there.
        assert run.messages == len(history.every)
        aside.rename(file)
        run_whole(timezone.now() + timedelta(days=400))
        assert not JournalEntry.objects.filter(kind=JournalKind.FAILED).exists()


class TestKeptBecause:
    def test_the_journal_has_a_reason_once(
        self, history: DaysOfHistory, settings: Settings
    ) -> None:
        days = dict.fromkeys(DEFAULT_DAYS, 5)
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, retention_days=days)
        unmounted(history.place)
        for _ in range(3):
            run_whole()
        assert JournalEntry.objects.filter(kind=JournalKind.REMOVED).count() == 1
        assert [run.kept_because != "" for run in RetentionRun.objects.all()] == [True] * 3

    def test_the_page_and_the_api_have_it(self, history: DaysOfHistory) -> None:
        unmounted(history.place)
        run = history.passed()
        assert read_retention_page().kept_because == run.kept_because
        assert RetentionRunSerializer(run).data["kept_because"] == run.kept_because

    @pytest.mark.parametrize("spoil", [unmounted, another, emptied_but_for_the_identity])
    def test_doctor_finds_it(self, history: DaysOfHistory, spoil: Callable[[Path], None]) -> None:
        url = str(history.place)
        assert check_archive(url).severity is Severity.OK
        spoil(history.place)
        found = check_archive(url)
        assert found.severity is Severity.FAILED
        assert url in found.text
