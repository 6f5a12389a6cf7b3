"""Retention removes settled, old and archived messages with all their rows, and no others."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.lifecycle import transitions
from delivery.maintenance import retention
from delivery.models import (
    Archived,
    Attempt,
    Delivery,
    EarlierSettlement,
    JournalEntry,
    JournalKind,
    RetentionRun,
    Status,
)
from delivery.states import OPEN
from subscriptions.models import ConfigurationChange
from tests.support import factories
from tests.unit.delivery.maintenance.retaining import (
    are_there,
    is_there,
    old,
    past,
    rows_in_all_tables,
    run_whole,
)
from tests.unit.delivery.support.test_resubmit import group

pytestmark = pytest.mark.django_db

KEPT_FOR_DAYS = [
    (Status(name), days) for name, days in DEFAULT_DAYS.items() if days and name in Status.values
]


@pytest.fixture(autouse=True)
def _archived() -> None:
    """The whole past is archived, unless a test changes that."""
    Archived.objects.create(pk=1, until=past(0.5))


def say(settings: Settings, **changed: Any) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, **changed)


class TestAge:
    @pytest.mark.parametrize(("status", "days"), KEPT_FOR_DAYS)
    def test_each_status_has_days_of_its_own(self, status: Status, days: int) -> None:
        over, under = old(status, days=days + 0.1), old(status, days=days - 0.1)
        run_whole()
        assert [is_there(row) for row in (over, under)] == [False, True]

    def test_every_settled_status_has_days(self) -> None:
        assert {status.value for status in Status if status not in OPEN} == DEFAULT_DAYS.keys() - {
            "UNMATCHED",
            "JOURNAL",
        }

    def test_deliveries_in_doubt_stay_unless_the_setting_has_a_period(
        self, settings: Settings
    ) -> None:
        row = old(Status.IN_DOUBT)
        run_whole()
        assert is_there(row)
        say(settings, retention_days={**DEFAULT_DAYS, "IN_DOUBT": 399})
        run_whole()
        assert not is_there(row)

    @pytest.mark.parametrize("status", OPEN)
    def test_open_deliveries_stay_however_old(self, settings: Settings, status: Status) -> None:
        row = old(status)
        say(settings, retention_days=dict.fromkeys(DEFAULT_DAYS, 1), retention_unarchived=True)
        run_whole()
        assert is_there(row)

    def test_the_period_starts_at_the_settlement(self) -> None:
        row = old(days=100)
        Delivery.objects.filter(pk=row.pk).update(settled_at=past(29))
        run_whole()
        assert is_there(row)

    def test_the_period_of_an_unmatched_message_starts_at_its_publication(self) -> None:
        over, under = (
            factories.message(published_at=past(31)),
            factories.message(published_at=past(29)),
        )
        run_whole()
        assert are_there(over, under) == [False, True]

    def test_never_keeps(self, settings: Settings) -> None:
        rows = [old(), old(Status.FAILED)]
        unwanted = factories.message(published_at=past(400))
        say(settings, retention_days=dict.fromkeys(DEFAULT_DAYS))
        assert run_whole().messages == 0
        assert are_there(unwanted, *(row.message for row in rows)) == [True] * 3


class TestArchive:
    def test_without_an_archive_nothing_is_removed(self) -> None:
        Archived.objects.all().delete()
        row, unwanted = old(), factories.message(published_at=past(400))
        assert run_whole().messages == 0
        assert are_there(row.message, unwanted) == [True, True]

    def test_only_deliveries_settled_before_the_watermark_are_removed(self) -> None:
        Archived.objects.update(until=past(200))
        before, after = old(days=201), old(days=199)
        run_whole()
        assert [is_there(row) for row in (before, after)] == [False, True]

    def test_a_delivery_settled_again_since_stays(self) -> None:
        row = old()
        Archived.objects.update(until=past(200))
        Delivery.objects.filter(pk=row.pk).update(settled_at=past(199))
        run_whole()
        assert is_there(row)

    def test_a_delivery_settled_before_but_unarchived_stays(self) -> None:
        row = old(Status.FAILED, settled_at=past(200))
        transitions.reopen_deliveries([row.pk], reason="resubmitted by ann")
        Delivery.objects.filter(pk=row.pk).update(status=Status.DELIVERED, settled_at=past(300))
        Archived.objects.update(until=past(250))
        run_whole()
        assert is_there(row)
        Archived.objects.update(until=past(150))
        run_whole()
        assert not is_there(row)
        assert not EarlierSettlement.objects.exists()

    def test_the_setting_for_no_archive_allows_removal(self, settings: Settings) -> None:
        Archived.objects.all().delete()
        row, young = old(), old(days=29)
        say(settings, retention_unarchived=True)
        run_whole()
        assert [is_there(message) for message in (row, young)] == [False, True]


class TestWholeMessages:
    def test_a_message_is_removed_with_its_deliveries_and_attempts_only(self) -> None:
        subscription = factories.subscription()
        kept = old(Status.PENDING, subscription=subscription)
        gone = old(Status.REJECTED, subscription=subscription)
        for number in (2, 3):
            factories.attempt(gone, number=number)
        old(
            message=gone.message,
            subscription=factories.subscription(event_type=gone.message.event_type),
        )
        before = rows_in_all_tables()
        run = run_whole()
        assert (run.messages, run.deliveries, run.attempts) == (1, 2, 4)
        lost = before - rows_in_all_tables()
        assert lost == Counter(
            delivery_message=1, delivery_delivery=2, delivery_attempt=4, delivery_loggedattempt=4
        )
        assert rows_in_all_tables() - before == Counter(
            delivery_retentionrun=1, delivery_journalentry=1
        )
        assert is_there(kept)
        assert not Attempt.objects.filter(delivery_id=gone.pk).exists()

    @pytest.mark.parametrize("sibling", [Status.PENDING, Status.FAILED, Status.IN_DOUBT])
    def test_one_remaining_delivery_keeps_the_message(self, sibling: Status) -> None:
        row = old(days=60)
        other = old(sibling, message=row.message, days=60)
        assert run_whole().messages == 0
        assert Delivery.objects.filter(pk__in=[row.pk, other.pk]).count() == 2

    def test_a_delivered_group_member_stays_while_a_sibling_could_be_sent(self) -> None:
        delivered, failed = group(Status.DELIVERED, Status.FAILED)
        Delivery.objects.filter(pk__in=[delivered.pk, failed.pk]).update(settled_at=past(60))
        delivered.message.__class__.objects.update(published_at=past(60))
        run_whole()
        assert is_there(delivered)
        run_whole(timezone.now() + timedelta(days=31))
        assert not is_there(delivered)


class TestPasses:
    def test_a_pass_starts_each_hour(self) -> None:
        now = timezone.now()
        times = [now + timedelta(minutes=minutes) for minutes in (0, 0, 59, 60, 61)]
        passed = [(retention.is_due(time), retention.advance_pass(time) > 0) for time in times]
        assert passed == [(due, due) for due in (True, False, False, True, False)]
        assert RetentionRun.objects.count() == 2

    def test_a_pass_goes_in_batches_with_its_progress(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "BATCH", 2)
        rows = [old() for _ in range(5)]
        assert retention.advance_pass(timezone.now()) == 1
        run = RetentionRun.objects.get()
        assert (run.state, run.messages, run.position) == ("RUNNING", 2, rows[1].message_id)
        assert retention.is_due(timezone.now())
        assert run.share == pytest.approx(2 / 5)
        assert [is_there(row) for row in rows] == [False, False, True, True, True]
        assert run_whole().messages == 5

    def test_kept_messages_are_passed_in_larger_steps(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "LOOK", 3)
        rows = [old(status) for status in [*[Status.PENDING] * 4, Status.DELIVERED]]
        retention.advance_pass(timezone.now())
        assert RetentionRun.objects.get().position == rows[2].message_id
        run_whole()
        assert [is_there(row) for row in rows] == [True] * 4 + [False]

    def test_the_journal_records_only_passes_that_removed_messages(self) -> None:
        run_whole()
        assert not JournalEntry.objects.exists()
        old(Status.REJECTED)
        run = run_whole()
        entry = JournalEntry.objects.get()
        assert entry.kind == JournalKind.REMOVED
        assert (
            f"Pass {run.pk} of retention removed 1 message with 1 delivery and 1 attempt, "
            in entry.text
        )

    def test_a_person_begins_one_and_of_two_at_once_one_is_refused(self) -> None:
        row = old()
        begun = retention.start_pass(actor="ann", now=timezone.now())
        with pytest.raises(retention.AlreadyRunningError) as refused:
            retention.start_pass(actor="bob", now=timezone.now())
        assert refused.value.run == begun
        assert run_whole() == begun
        assert not is_there(row)
        assert ConfigurationChange.objects.get().actor == "ann"

    def test_empty_passes_are_removed_after_a_week(self) -> None:
        _, busy = (RetentionRun.objects.create(state="DONE", ended_at=past(8)) for _ in range(2))
        RetentionRun.objects.update(started_at=past(8))
        RetentionRun.objects.filter(pk=busy.pk).update(messages=1)
        retention.advance_pass(timezone.now())
        begun = RetentionRun.objects.latest("id")
        assert set(RetentionRun.objects.all()) == {busy, begun}
        assert begun != busy
