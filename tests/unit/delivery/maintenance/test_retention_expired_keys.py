"""Retention removes keys past their time, and journal entries by days of their own."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.maintenance import retention
from delivery.models import Archived, DedupKey, IdempotencyKey, JoinKey, JournalEntry, JournalKind
from tests.support import factories
from tests.unit.delivery.maintenance.retaining import is_there, old, past, run_whole
from tests.unit.delivery.maintenance.test_retention import say

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _archived() -> None:
    """The whole past is archived, unless a test changes that."""
    Archived.objects.create(pk=1, until=past(0.5))


class TestForgetting:
    def test_idempotency_keys_past_their_day_go(self) -> None:
        publisher = factories.publisher()
        for key, hours in (("old", 24.1), ("young", 23.9)):
            row = IdempotencyKey.objects.create(publisher=publisher, key=key, digest=b"")
            IdempotencyKey.objects.filter(pk=row.pk).update(
                created_at=timezone.now() - timedelta(hours=hours)
            )
        run_whole()
        assert [row.key for row in IdempotencyKey.objects.all()] == ["young"]

    def test_dedup_keys_past_the_window_of_their_subscription_go(self) -> None:
        short = factories.subscription(dedup_mode="KEY", dedup_window_seconds=3600)
        long = factories.subscription(dedup_mode="KEY", dedup_window_seconds=86_400)
        for subscription in (short, long):
            DedupKey.objects.create(subscription=subscription, key=b"k", delivery_id=1)
        DedupKey.objects.update(seen_at=timezone.now() - timedelta(hours=2))
        run_whole()
        assert [row.subscription for row in DedupKey.objects.all()] == [long]

    def test_keys_of_joins_whose_time_is_over_go(self) -> None:
        for key, hours in (b"over", -1), (b"open", 1):
            JoinKey.objects.create(key=key, expires_at=timezone.now() + timedelta(hours=hours))
        run_whole()
        assert [bytes(row.key) for row in JoinKey.objects.all()] == [b"open"]

    def test_journal_entries_go_by_days_of_their_own(self, settings: Settings) -> None:
        for days in (366, 364):
            JournalEntry.objects.create(kind=JournalKind.UNMATCHED, text=str(days), at=past(days))
        run_whole()
        assert [entry.text for entry in JournalEntry.objects.all()] == ["364"]
        say(settings, retention_days={**DEFAULT_DAYS, "JOURNAL": None})
        JournalEntry.objects.update(at=past(3660))
        run_whole()
        assert JournalEntry.objects.count() == 1

    def test_the_journal_waits_for_the_archive_too(self) -> None:
        JournalEntry.objects.create(kind=JournalKind.UNMATCHED, text="", at=past(366))
        Archived.objects.update(until=past(367))
        run_whole()
        assert JournalEntry.objects.count() == 1
        Archived.objects.update(until=past(1))
        run_whole()
        assert JournalEntry.objects.count() == 0

    def test_keys_are_removed_in_batches_before_messages(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "FORGET", 2)
        row = old()
        for number in range(5):
            JournalEntry.objects.create(kind=JournalKind.UNMATCHED, text=str(number), at=past(366))
        assert [retention.advance_pass(timezone.now()) for _ in range(3)] == [2, 2, 1]
        assert is_there(row)
        run_whole()
        assert not is_there(row)
