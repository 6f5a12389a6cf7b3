"""Bulk cancellation by a filter: counted before, oldest first, each once.

Cancelled deliveries in doubt are reported as failures.
"""

from typing import Any

import pytest
from django.utils import timezone

from delivery.lifecycle.transitions import CANCELLABLE
from delivery.models import (
    BulkVerb,
    Delivery,
    FailureNotice,
    JournalEntry,
    JournalKind,
    Message,
    Resubmission,
    Status,
)
from delivery.states import OPEN
from delivery.support import bulk_jobs
from delivery.support.bulk_jobs import advance_job, cancel_job, start_job
from delivery.support.selection import one_of, preview_selection
from subscriptions.models import ConfigurationChange, Mode
from tests.support import factories
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import finish, statuses

pytestmark = pytest.mark.django_db


def waiting(count: int, **fields: Any) -> list[Delivery]:
    subscription = factories.subscription()
    message = factories.message(event_type=subscription.event_type)
    return [
        factories.delivery(subscription=subscription, message=message, **fields)
        for _ in range(count)
    ]


def job_for(rate: float | None = None, **chosen: Any) -> Resubmission:
    return start_job(
        chosen or {"status": ["PENDING"]}, rate=rate, actor="ann", verb=BulkVerb.CANCEL
    )


class TestSelectedForCancellation:
    def test_open_deliveries_and_only_if_named_those_in_doubt(self) -> None:
        rows = [factories.delivery(status) for status in Status]
        assert preview_selection({}, BulkVerb.CANCEL).sample == [
            row.pk for row in rows if row.status in OPEN
        ]
        every = {"status": [status.value for status in CANCELLABLE]}
        assert preview_selection(every, BulkVerb.CANCEL).sample == [
            row.pk for row in rows if row.status in (*OPEN, Status.IN_DOUBT)
        ]

    def test_are_counted_by_status_with_the_oldest(self) -> None:
        first, *_ = waiting(2)
        factories.delivery(Status.IN_DOUBT)
        found = preview_selection({"status": ["PENDING", "IN_DOUBT"]}, BulkVerb.CANCEL)
        assert list(found.statuses.items()) == [("PENDING", 2), ("IN_DOUBT", 1)]
        assert (found.count, found.oldest_at) == (3, first.message.published_at)

    def test_open_deliveries_are_found_without_reading_settled_ones(self) -> None:
        plan = Delivery.objects.filter(one_of(OPEN)).order_by().explain()
        assert "delivery_waiting" in plan
        assert "delivery_settled" not in plan

    def test_no_delivery_that_a_publisher_waits_for(self) -> None:
        factories.delivery(lane=None)
        assert preview_selection({}, BulkVerb.CANCEL).count == 0


class TestCancellationJob:
    def test_all_are_cancelled_and_the_journal_names_the_person(self) -> None:
        rows = waiting(3)
        job = finish(job_for())
        assert statuses(rows) == ["CANCELLED"] * 3
        assert (job.state, job.count, job.done, job.changed) == ("DONE", 3, 3, 3)
        begin, end = JournalEntry.objects.order_by("id")
        assert {begin.kind, end.kind} == {JournalKind.CANCELLED}
        assert "Begins: 3 open deliveries to be cancelled" in begin.text
        assert "Done: 3 of 3 deliveries cancelled." in end.text
        assert ConfigurationChange.objects.get().object_name == f"cancellation {job.pk}"
        assert (
            Delivery.objects.filter(reason=f"cancelled by ann (cancellation {job.pk})").count() == 3
        )

    def test_deliveries_published_later_are_not_cancelled(self) -> None:
        rows = waiting(1)
        job = job_for()
        later = factories.delivery()
        finish(job)
        assert statuses([*rows, later]) == ["CANCELLED", "PENDING"]

    def test_deliveries_delivered_meanwhile_stay_delivered(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk_jobs, "BATCH", 1)
        rows = waiting(2)
        job = job_for()
        advance_job(timezone.now())
        Delivery.objects.filter(pk=rows[1].pk).update(
            status=Status.DELIVERED, settled_at=timezone.now()
        )
        assert finish(job).changed == 1
        assert statuses(rows) == ["CANCELLED", "DELIVERED"]

    def test_deliveries_resubmitted_behind_the_job_stay(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk_jobs, "BATCH", 1)
        rows = waiting(2)
        job = job_for()
        advance_job(timezone.now())
        Delivery.objects.filter(pk=rows[0].pk).update(status=Status.PENDING, settled_at=None)
        finish(job)
        assert statuses(rows) == ["PENDING", "CANCELLED"]

    def test_a_delivery_in_doubt_is_reported_as_a_failure_first(self) -> None:
        row = factories.delivery(Status.IN_DOUBT)
        FailureNotice.objects.create(delivery_id=row.pk, number=1)
        assert finish(job_for(status=["IN_DOUBT"])).changed == 1
        assert statuses([row]) == ["CANCELLED"]
        assert Message.objects.filter(event_type__name="Inturn.Delivery.Failed").count() == 1

    def test_a_message_held_by_a_mailbox_client_is_taken_away(self) -> None:
        subscription = factories.subscription(mode=Mode.PULL)
        row = factories.delivery(Status.IN_FLIGHT, subscription=subscription, receive_count=1)
        finish(job_for(status=["IN_FLIGHT"]))
        now = Delivery.objects.get(pk=row.pk)
        assert (now.status, now.lease_token, now.attempts) == (Status.CANCELLED, None, 1)
        assert now.history.get().outcome == "UNACKNOWLEDGED"

    def test_a_stopped_job_leaves_cancelled_deliveries_cancelled(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk_jobs, "BATCH", 1)
        rows = waiting(2)
        job = job_for()
        advance_job(timezone.now())
        assert cancel_job(job, actor="bob", now=timezone.now())
        assert advance_job(timezone.now()) == 0
        assert statuses(rows) == ["CANCELLED", "PENDING"]
        assert JournalEntry.objects.filter(
            text__contains="1 of them were cancelled", actor="bob"
        ).exists()
