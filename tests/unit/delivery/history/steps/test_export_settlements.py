"""Every settlement is one row of the archive, of a report and of *History*.

A person may resubmit a delivery any number of times between two exports.
"""

import csv
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone

from delivery.database import queries as database
from delivery.history.job import StepJob
from delivery.history.schemas import ATTEMPTS
from delivery.history.steps.export import export_history
from delivery.history.steps.report import write_report
from delivery.history.steps.rollup import measure_hours
from delivery.lifecycle import transitions
from delivery.maintenance import expiry
from delivery.models import Delivery, EarlierSettlement, Finding, HistoryHour
from delivery.states import Status
from delivery.support import resolve, resubmit
from tests.unit.delivery.history import archived
from tests.unit.delivery.history.exporting import AT_ONCE, rows, settled
from tests.unit.delivery.history.settlement_rows import (
    ANN,
    Found,
    resubmitted,
    resubmitted_by_a_filter,
    settlements,
    try_once,
    verdict,
)
from tests.unit.delivery.mailbox.box import box
from tests.unit.delivery.support.test_resubmit import group

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
@pytest.mark.parametrize("send_again", [resubmitted, resubmitted_by_a_filter])
def test_a_delivery_rejected_three_times_between_exports_has_three_rows(
    job: StepJob, tmp_path: Path, send_again: Callable[[Delivery], None]
) -> None:
    delivery = settled(Status.PENDING, days=0)
    for _ in range(2):
        try_once(delivery, Status.REJECTED)
        send_again(delivery)
    try_once(delivery, Status.REJECTED)
    export_history(job, lag=AT_ONCE)
    assert settlements(job, delivery) == [("REJECTED", [1]), ("REJECTED", [2]), ("REJECTED", [3])]
    measure_hours(job)
    hours = HistoryHour.objects.filter(subscription_id=delivery.subscription_id)
    assert sum(hours.values_list("rejected", flat=True)) == 3
    assert sum(hours.values_list("attempts", flat=True)) == 3
    day = timedelta(days=1)
    since, until = (timezone.now() + way * day for way in (-1, 1))
    made = write_report(
        job, since=since.isoformat(), until=until.isoformat(), to=str(tmp_path / "reports")
    )
    with Path(made["path"]).open(newline="", encoding="utf-8") as file:
        reported = [
            (row["status"], row["attempts"], row["attempts_before"]) for row in csv.DictReader(file)
        ]
    assert reported == [("REJECTED", "1", "0"), ("REJECTED", "2", "1"), ("REJECTED", "3", "2")]
    assert verdict(job) == "proven"


def cancelled_and_sent_again() -> tuple[Delivery, Found]:
    delivery = settled(Status.PENDING, days=0)
    transitions.cancel_deliveries([delivery.pk], actor=ANN)
    resubmitted(delivery)
    try_once(delivery, Status.DELIVERED)
    return delivery, [("CANCELLED", []), ("DELIVERED", [1])]


def in_doubt_and_marked_as_delivered() -> tuple[Delivery, Found]:
    delivery = settled(Status.IN_DOUBT)
    resolve.mark_delivered(delivery.pk, actor=ANN)
    return delivery, [("IN_DOUBT", [1]), ("DELIVERED", [])]


def in_doubt_and_cancelled() -> tuple[Delivery, Found]:
    delivery = settled(Status.IN_DOUBT)
    resolve.cancel_delivery(delivery.pk, actor=ANN)
    return delivery, [("IN_DOUBT", [1]), ("CANCELLED", [])]


def in_doubt_and_cancelled_with_others() -> tuple[Delivery, Found]:
    delivery = settled(Status.IN_DOUBT)
    transitions.cancel_some([delivery.pk], reason="cancelled by ann")
    return delivery, [("IN_DOUBT", [1]), ("CANCELLED", [])]


def expired_and_still_open() -> tuple[Delivery, Found]:
    delivery = settled(Status.PENDING, days=0, expires_at=timezone.now() - timedelta(seconds=1))
    with transaction.atomic():
        assert expiry.settle_overdue(limit=10) == 1
    resubmitted(delivery)
    try_once(delivery, Status.FAILED)
    resubmitted(delivery)
    return delivery, [("EXPIRED", []), ("FAILED", [1])]


def rejected_from_a_mailbox() -> tuple[Delivery, Found]:
    mailbox = box()
    (delivery,) = mailbox.put()
    mailbox.say("reject", mailbox.one())
    resubmitted(delivery)
    mailbox.say("ack", mailbox.one())
    return delivery, [("REJECTED", [1]), ("DELIVERED", [2])]


def of_a_group_with_its_sibling() -> tuple[Delivery, Found]:
    delivery, sibling = group(Status.PENDING, Status.PENDING)
    try_once(delivery, Status.FAILED)
    transitions.cancel_deliveries([sibling.pk], actor=ANN)
    resubmit.resubmit_some([delivery.pk, sibling.pk], actor=ANN)
    try_once(sibling, Status.REJECTED)
    return sibling, [("CANCELLED", []), ("REJECTED", [1])]


@pytest.mark.slow
def test_however_a_person_ends_a_settlement_it_is_kept(job: StepJob) -> None:
    expected = dict(
        made()
        for made in (
            cancelled_and_sent_again,
            in_doubt_and_marked_as_delivered,
            in_doubt_and_cancelled,
            in_doubt_and_cancelled_with_others,
            expired_and_still_open,
            rejected_from_a_mailbox,
            of_a_group_with_its_sibling,
        )
    )
    export_history(job, lag=AT_ONCE)
    assert {delivery: settlements(job, delivery) for delivery in expected} == expected
    assert verdict(job) == "proven"


@pytest.mark.slow
def test_each_is_archived_by_the_export_of_its_own_time(
    job: StepJob, progress: archived.RecordedProgress
) -> None:
    """The archive has each settlement once, of a delivery resubmitted around exports."""
    delivery = settled(Status.PENDING, days=0)
    try_once(delivery, Status.FAILED)
    resubmitted(delivery)
    try_once(delivery, Status.REJECTED)

    def again() -> None:
        resubmitted(delivery)
        try_once(delivery, Status.FAILED)

    progress.when("exporting", again)
    export_history(job, lag=AT_ONCE)
    assert settlements(job, delivery) == [("FAILED", [1]), ("REJECTED", [2])]
    assert verdict(job) == "proven"
    resubmitted(delivery)
    export_history(job, lag=AT_ONCE)
    assert settlements(job, delivery) == [("FAILED", [1]), ("REJECTED", [2]), ("FAILED", [3])]
    try_once(delivery, Status.DELIVERED)
    assert verdict(job) == "proven"
    export_history(job, lag=AT_ONCE)
    assert settlements(job, delivery)[3:] == [("DELIVERED", [4])]
    assert verdict(job) == "proven"


@pytest.mark.slow
def test_an_attempt_that_ends_after_its_delivery_was_cancelled_is_no_settlement_of_its_own(
    job: StepJob,
) -> None:
    delivery = settled(Status.PENDING, days=0)
    transitions.cancel_deliveries([delivery.pk], actor=ANN)
    try_once(delivery, Status.DELIVERED)
    export_history(job, lag=AT_ONCE)
    assert settlements(job, delivery) == [("CANCELLED", [1])]
    assert verdict(job) == "proven"


@pytest.mark.slow
def test_the_answer_to_a_sync_call_settles_it_once(job: StepJob) -> None:
    """Before the answer the delivery is IN_DOUBT, which nobody decided."""
    delivery = settled(Status.IN_DOUBT, attempts=0)
    answer = {
        "delivery": delivery.pk,
        "status": "DELIVERED",
        "reason": "200",
        "is_failure": False,
        "started_at": timezone.now(),
        "duration_ms": 5,
        "outcome": "SUCCESS",
        "status_code": 200,
        "error": "",
        "excerpt": b"",
    }
    database.execute_statement("settle_sync", answer)
    export_history(job, lag=AT_ONCE)
    assert settlements(job, delivery) == [("DELIVERED", [1])]
    assert verdict(job) == "proven"


def test_each_has_its_own_attempts_though_the_clock_went_back_between_them(job: StepJob) -> None:
    delivery = settled(Status.FAILED)
    resubmitted(delivery)
    try_once(delivery, Status.DELIVERED)
    Delivery.objects.filter(pk=delivery.pk).update(settled_at=timezone.now() - timedelta(days=2))
    EarlierSettlement.objects.filter(delivery_id=delivery.pk, is_amended=True).delete()
    export_history(job, lag=AT_ONCE)
    assert settlements(job, delivery) == [("DELIVERED", [2]), ("FAILED", [1])]


def test_settlements_of_one_time_lose_no_attempt(job: StepJob) -> None:
    """While the clock is behind the archive, all events have the same time."""
    delivery = settled(Status.PENDING, days=0)
    try_once(delivery, Status.REJECTED)
    resubmitted(delivery)
    try_once(delivery, Status.REJECTED)
    (earlier,) = EarlierSettlement.objects.filter(delivery_id=delivery.pk)
    Delivery.objects.filter(pk=delivery.pk).update(settled_at=earlier.settled_at)
    export_history(job, lag=AT_ONCE)
    assert sorted(row["number"] for row in rows(job, ATTEMPTS)) == [1, 2]


@pytest.mark.slow
def test_verify_notices_a_settlement_that_is_nowhere(job: StepJob) -> None:
    delivery = settled(Status.PENDING, days=0)
    for _ in range(2):
        try_once(delivery, Status.REJECTED)
        resubmitted(delivery)
    EarlierSettlement.objects.filter(delivery_id=delivery.pk, attempts=2).delete()
    assert verdict(job) == "broken here"
    text = f"Delivery {delivery.pk} was settled 2 times, and the history has 1 of them."
    assert text in Finding.objects.values_list("text", flat=True)
    try_once(delivery, Status.DELIVERED)
    export_history(job, lag=AT_ONCE)
    Finding.objects.all().delete()
    assert verdict(job) == "broken here"
    text = f"Delivery {delivery.pk} was settled 3 times, and the history has 2 of them."
    assert text in Finding.objects.values_list("text", flat=True)
