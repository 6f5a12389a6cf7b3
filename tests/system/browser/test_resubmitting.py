"""Support resubmits failed deliveries by clicks: one, an edited copy, all of a filter."""

from datetime import datetime

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Dialog, expect

from delivery.models import Delivery, Message, Resubmission
from delivery.states import Status
from delivery.support.bulk_jobs import advance_job
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import rejected

pytestmark = pytest.mark.django_db(transaction=True)


def work_off(now: datetime) -> None:
    with transaction.atomic():
        advance_job(now)


def status_of(row: Delivery) -> str:
    return Delivery.objects.get(pk=row.pk).status


@pytest.mark.slow
def test_one_delivery_is_resubmitted(ann: ConsoleVisitor) -> None:
    (row,) = rejected(1)
    ann.page.goto(f"/admin/delivery/delivery/{row.pk}/change/")
    ann.photograph("delivery-rejected")
    ann.page.get_by_role("button", name="Resubmit").click()
    expect(ann.page.get_by_text(f"Delivery {row.pk} is queued again")).to_be_visible()
    expect(ann.page.get_by_role("button", name="Resubmit")).to_have_count(0)
    assert status_of(row) == Status.PENDING


@pytest.mark.slow
def test_deliveries_in_doubt_are_decided_after_a_confirmation(ann: ConsoleVisitor) -> None:
    row = factories.delivery(Status.IN_DOUBT, reason="in doubt: it may have been sent")
    ann.page.goto(f"/admin/delivery/delivery/{row.pk}/change/")
    ann.photograph("delivery-in-doubt")
    ann.page.once("dialog", Dialog.dismiss)
    ann.page.get_by_role("button", name="Mark as delivered").click()
    assert status_of(row) == Status.IN_DOUBT
    ann.page.once("dialog", Dialog.accept)
    ann.page.get_by_role("button", name="Mark as delivered").click()
    expect(ann.page.get_by_text("is marked as DELIVERED")).to_be_visible()
    assert status_of(row) == Status.DELIVERED


@pytest.mark.slow
def test_an_edited_copy_keeps_its_line_breaks(ann: ConsoleVisitor) -> None:
    message = factories.message(b'{\n  "number": 1\n}\n')
    subscription = factories.subscription(event_type=message.event_type)
    row = factories.delivery(Status.REJECTED, message=message, subscription=subscription)
    ann.page.goto(f"/admin/delivery/delivery/{row.pk}/change/")
    ann.page.get_by_role("link", name="Edit and resubmit").click()
    body = ann.page.get_by_label("Body", exact=True)
    expect(body).to_have_value('{\n  "number": 1\n}\n')
    body.fill('{\n  "number": \n}\n')
    ann.page.get_by_role("button", name="Send the edited copy").click()
    expect(ann.page.get_by_text("The body is not JSON")).to_be_visible()
    ann.photograph("edit")
    body.fill('{\n  "number": 2\n}\n')
    ann.page.get_by_role("button", name="Send the edited copy").click()
    expect(ann.page.get_by_text("is unchanged")).to_be_visible()
    copy = Message.objects.get(edited_from=message)
    assert bytes(copy.body) == b'{\n  "number": 2\n}\n'


@pytest.mark.slow
def test_all_deliveries_matching_a_filter_are_counted_resubmitted_and_watched(
    ann: ConsoleVisitor,
) -> None:
    rejected(8)
    ann.page.goto("/admin/delivery/delivery/?status=REJECTED")
    ann.page.get_by_role("link", name="Resubmit all matching").click()
    expect(ann.page.get_by_text("8 deliveries would be resubmitted")).to_be_visible()
    ann.photograph("resubmit-many")
    ann.page.get_by_label("Deliveries per second").fill("5")
    ann.page.get_by_role("button", name="Resubmit 8").click()
    expect(ann.page.get_by_role("heading", name="0 of 8")).to_be_visible()
    work_off(timezone.now())
    # The page polls.
    expect(ann.page.get_by_role("heading", name="5 of 8")).to_be_visible()
    ann.photograph("resubmission-running")
    address = ann.page.url
    ann.page.goto("/admin/")
    work_off(timezone.now().replace(year=2099))
    ann.page.goto(address)
    expect(ann.page.get_by_text("DONE")).to_be_visible()
    expect(ann.page.get_by_text("8 sent again.")).to_be_visible()
    ann.photograph("resubmission-done")
    ann.page.goto("/admin/delivery/resubmission/")
    ann.photograph("resubmissions")


@pytest.mark.slow
def test_a_running_resubmission_is_stopped(ann: ConsoleVisitor) -> None:
    rejected(1)
    ann.page.goto("/admin/delivery/resubmission/add/?status=REJECTED")
    ann.page.get_by_role("button", name="Resubmit 1").click()
    ann.page.once("dialog", Dialog.accept)
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.page.get_by_text("Stopped after 0")).to_be_visible()
    assert Resubmission.objects.get().state == "CANCELLED"
