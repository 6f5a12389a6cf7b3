"""Bulk resubmission by a filter: counted before, oldest first, at a rate, each once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.models import (
    Delivery,
    FailureNotice,
    JournalEntry,
    Message,
    Resubmission,
    ResubmissionState,
    Status,
)
from delivery.support import bulk_jobs, selection
from delivery.support.bulk_jobs import advance_job, cancel_job, start_job
from delivery.support.selection import preview_selection
from subscriptions.models import ConfigurationChange
from tests.support import factories
from tests.unit.delivery.support.test_resubmit import group

ACTOR = "ann"
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def rejected(count: int) -> list[Delivery]:
    """Settled long before any job: a test's transaction stops the database's clock."""
    subscription = factories.subscription()
    message = factories.message(event_type=subscription.event_type, published_at=NOON)
    return [
        factories.delivery(Status.REJECTED, subscription=subscription, message=message)
        for _ in range(count)
    ]


def statuses(rows: list[Delivery]) -> list[str]:
    return [Delivery.objects.get(pk=row.pk).status for row in rows]


def job_for(rate: float | None = None, **chosen: Any) -> Resubmission:
    return start_job(chosen or {"status": ["REJECTED"]}, rate=rate, actor=ACTOR)


def finish(job: Resubmission) -> Resubmission:
    """Advance until it has ended."""
    while job.state == ResubmissionState.RUNNING:
        assert advance_job(timezone.now()) > 0
        job.refresh_from_db()
    return job


class TestSelectedForResubmission:
    @pytest.fixture
    def wanted(self) -> Delivery:
        subscription = factories.subscription("orders", subscriber=factories.subscriber("crm"))
        message = factories.message(event_type=subscription.event_type, published_at=NOON)
        return factories.delivery(Status.FAILED, subscription=subscription, message=message)

    def test_deliveries_are_selected_by_every_field(self, wanted: Delivery) -> None:
        factories.delivery(Status.REJECTED)
        for chosen in (
            {"status": ["FAILED"]},
            {"subscriber": "crm"},
            {"subscription": "orders"},
            {"subscription": str(wanted.subscription_id)},
            {"event_type": wanted.message.event_type.name},
            {"message": wanted.message_id},
            {"until": "2026-05-04T12:00:01Z"},
            {
                "status": ["FAILED", "REJECTED"],
                "subscriber": "crm",
                "since": "2026-05-04T12:00:00Z",
            },
        ):
            found = preview_selection(chosen)
            assert (found.count, found.sample) == (1, [wanted.pk]), chosen

    def test_no_received_open_or_sync_delivery(self) -> None:
        rows = [factories.delivery(status) for status in Status]
        factories.delivery(Status.REJECTED, lane=None)
        every = {"status": [status.value for status in RESUBMITTABLE]}
        assert preview_selection(every).sample == [
            row.pk for row in rows if row.status in RESUBMITTABLE
        ]

    def test_without_a_status_cancelled_and_doubtful_deliveries_are_left_out(self) -> None:
        rows = [factories.delivery(status) for status in Status]
        failed = (Status.REJECTED, Status.UNSUPPORTED, Status.FAILED, Status.EXPIRED)
        assert preview_selection({}).sample == [row.pk for row in rows if row.status in failed]

    def test_counting_ends_at_its_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(selection, "COUNT_LIMIT", 2)
        rejected(5)
        assert preview_selection({}).count == 3
        assert bulk_jobs.count_text(job_for()) == "more than 2"

    def test_counting_changes_nothing(self) -> None:
        rows = rejected(2)
        preview_selection({})
        assert statuses(rows) == ["REJECTED"] * 2
        assert not Resubmission.objects.exists()


class TestResubmissionJob:
    def test_all_are_resubmitted_and_the_journal_names_the_person(self) -> None:
        rows = rejected(3)
        job = finish(job_for())
        assert statuses(rows) == ["PENDING"] * 3
        assert (job.state, job.count, job.done, job.changed) == ("DONE", 3, 3, 3)
        assert job.ended_at is not None
        begin, end = JournalEntry.objects.order_by("id")
        assert (begin.actor, end.actor) == (ACTOR, ACTOR)
        assert "Begins: 3 settled deliveries to be sent again" in begin.text
        assert "Done: 3 of 3 deliveries" in end.text
        change = ConfigurationChange.objects.get()
        assert (change.actor, change.action, change.object_name) == (
            ACTOR,
            "created",
            f"resubmission {job.pk}",
        )
        assert (
            Delivery.objects.filter(reason=f"resubmitted by ann (resubmission {job.pk})").count()
            == 3
        )

    def test_a_job_goes_in_batches_by_id_with_its_progress(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk_jobs, "BATCH", 2)
        rows = rejected(3)
        job = job_for()
        assert advance_job(timezone.now()) == 2
        job.refresh_from_db()
        assert statuses(rows) == ["PENDING", "PENDING", "REJECTED"]
        assert (job.state, job.done, job.position) == ("RUNNING", 2, rows[1].pk)
        assert finish(job).changed == 3

    def test_a_delivery_that_fails_again_is_not_resubmitted_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk_jobs, "BATCH", 1)
        rows = rejected(2)
        job = job_for()
        for row in rows:
            advance_job(timezone.now())
            Delivery.objects.filter(pk=row.pk).update(
                status=Status.REJECTED, settled_at=timezone.now()
            )
        assert finish(job).changed == 2
        assert statuses(rows) == ["REJECTED"] * 2

    def test_deliveries_settled_later_are_left_out(self) -> None:
        pending = factories.delivery()
        job = job_for()
        Delivery.objects.filter(pk=pending.pk).update(
            status=Status.REJECTED, settled_at=timezone.now() + timedelta(seconds=1)
        )
        later = factories.delivery(Status.REJECTED)
        assert finish(job).done == 0
        assert statuses([pending, later]) == ["REJECTED"] * 2

    def test_deliveries_that_cannot_be_resubmitted_count_as_done(self) -> None:
        refused, _ = group(Status.REJECTED, Status.DELIVERED)
        Delivery.objects.filter(pk=refused.pk).update(settled_at=NOON)
        job = finish(job_for())
        assert (job.done, job.changed) == (1, 0)
        assert statuses([refused]) == ["REJECTED"]

    def test_a_filter_without_matches_is_done_at_once(self) -> None:
        assert finish(job_for(subscriber="nobody")).done == 0

    def test_failures_are_reported_first(self) -> None:
        (row,) = rejected(1)
        FailureNotice.objects.create(delivery_id=row.pk, number=1)
        finish(job_for())
        assert Message.objects.filter(event_type__name="Inturn.Delivery.Failed").count() == 1

    def test_several_jobs_take_turns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bulk_jobs, "BATCH", 1)
        first, second = rejected(3), rejected(1)
        for rows in (first, second):
            job_for(subscriber=rows[0].subscription.subscriber.name)
        for _ in range(2):
            advance_job(timezone.now())
        assert [statuses(rows)[0] for rows in (first, second)] == ["PENDING", "PENDING"]


class TestRate:
    def test_the_rate_limits_deliveries_per_second(self) -> None:
        rows = rejected(5)
        job = job_for(rate=2)
        began = job.next_at
        done = [advance_job(began + timedelta(seconds=seconds)) for seconds in (0, 0.5, 1, 1.9, 2)]
        assert done == [2, 0, 2, 0, 1]
        assert statuses(rows) == ["PENDING"] * 5

    def test_less_than_one_a_second(self) -> None:
        rejected(2)
        began = job_for(rate=0.1).next_at
        assert [advance_job(began + timedelta(seconds=seconds)) for seconds in (0, 9, 10)] == [
            1,
            0,
            1,
        ]

    def test_a_late_batch_is_caught_up_and_a_long_stop_is_not(self) -> None:
        rejected(9)
        began = job_for(rate=2).next_at
        done = [
            advance_job(began + timedelta(seconds=seconds))
            for seconds in (0, 1.4, 2, 60, 60.1, 60.2)
        ]
        assert done == [2, 2, 2, 2, 1, 0]


class TestCancelling:
    def test_a_cancelled_job_keeps_its_resubmissions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bulk_jobs, "BATCH", 1)
        rows = rejected(2)
        job = job_for()
        advance_job(timezone.now())
        assert cancel_job(job, actor="bob", now=timezone.now())
        assert advance_job(timezone.now()) == 0
        assert statuses(rows) == ["PENDING", "REJECTED"]
        assert (job.state, job.done) == ("CANCELLED", 1)
        entry = JournalEntry.objects.order_by("id").last()
        assert entry is not None
        assert (entry.actor, "Cancelled after 1" in entry.text) == ("bob", True)
        assert ConfigurationChange.objects.filter(actor="bob", action="cancelled").count() == 1

    def test_an_ended_job_cannot_be_cancelled(self) -> None:
        job = finish(job_for())
        assert not cancel_job(job, actor="bob", now=timezone.now())
        job.refresh_from_db()
        assert job.state == ResubmissionState.DONE
