"""Support resumes a blocked subscriber, from sign-in to result."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Dialog, Page, expect

from delivery.models import Delivery, JournalEntry, JournalKind, Lane, LaneState
from delivery.states import Status
from subscriptions.models import Subscription
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def head(transactional_db: None) -> Delivery:
    """A delivery that blocks the subscriber crm, with three behind it in two subscriptions."""
    crm = factories.subscriber("crm")
    down, well = (factories.subscription(name, subscriber=crm) for name in ("down", "well"))
    head = factories.delivery(subscription=down, attempts=3, reason="connection refused")
    for subscription in (down, well, well):
        factories.delivery(subscription=subscription)
    Lane.objects.filter(subscriber=crm).update(
        state=LaneState.BLOCKED,
        since=timezone.now(),
        reason="unreachable: connection refused",
        delivery_id=head.pk,
        failures=3,
        next_try_at=timezone.now(),
    )
    return head


def test_logging_in_leads_to_the_overview(administrator: User, watched_page: Page) -> None:
    visitor = ConsoleVisitor(watched_page)
    watched_page.goto("/admin/login/")
    visitor.photograph("login")
    visitor.log_in("ann")
    expect(watched_page.get_by_text("There are no subscriptions yet.")).to_be_visible()
    visitor.photograph("overview-empty")


@pytest.mark.slow
def test_the_overview_shows_blocked_subscribers_with_cause_and_remedy(
    head: Delivery, ann: ConsoleVisitor
) -> None:
    row = ann.page.locator(".inturn-blocked tbody")
    expect(row).to_have_count(1)
    for said in (
        "crm",
        "unreachable: connection refused",
        head.message.public_id,
        "3 failed attempts",
    ):
        expect(row).to_contain_text(said)
    expect(row).to_contain_text("Resumes 1 other subscription of crm (2 waiting messages).")
    ann.photograph("overview-blocked")


@pytest.mark.slow
def test_one_click_makes_a_subscription_inactive_and_another_undoes_it(
    head: Delivery, ann: ConsoleVisitor
) -> None:
    ann.page.get_by_role("button", name="Deactivate", exact=True).click()
    expect(ann.page.get_by_text("No subscriber is stopped.")).to_be_visible()
    assert Subscription.objects.get(name="down").status == "INACTIVE"
    ann.photograph("overview-undo")

    ann.page.get_by_role("button", name="Undo").click()
    expect(ann.page.get_by_text("crm/down is ACTIVE again")).to_be_visible()
    expect(ann.page.locator(".inturn-blocked tbody")).to_have_count(1)
    assert Subscription.objects.get(name="down").status == "ACTIVE"


def test_skipping_asks_for_confirmation(head: Delivery, ann: ConsoleVisitor) -> None:
    skip = ann.page.get_by_role("button", name="Skip this message")
    questions: list[str] = []

    def refuse(dialog: Dialog) -> None:
        questions.append(dialog.message)
        dialog.dismiss()

    ann.page.once("dialog", refuse)
    skip.click()
    asked = (
        f"Skip {head.message.public_id}? It is CANCELLED for down, and the next message is sent."
    )
    assert questions == [asked]
    head.refresh_from_db()
    assert head.status == Status.PENDING

    ann.page.once("dialog", Dialog.accept)
    skip.click()
    expect(ann.page.get_by_text(f"Skipped: delivery {head.pk} is CANCELLED")).to_be_visible()
    head.refresh_from_db()
    assert head.status == Status.CANCELLED


@pytest.mark.slow
def test_retry_now_moves_the_next_try(head: Delivery, ann: ConsoleVisitor) -> None:
    ann.page.get_by_role("button", name="Retry now").click()
    expect(ann.page.get_by_text("crm retries now.")).to_be_visible()
    assert JournalEntry.objects.filter(kind=JournalKind.RETRIED, actor="ann").exists()


def test_the_overview_notices_by_itself_and_keeps_the_keyboard_where_it_was(
    head: Delivery, ann: ConsoleVisitor
) -> None:
    ann.page.get_by_role("button", name="Retry now").focus()
    Lane.objects.update(reason="503: overloaded")
    expect(ann.page.get_by_text("503: overloaded")).to_be_visible()
    expect(ann.page.get_by_role("button", name="Retry now")).to_be_focused()
    Lane.objects.update(state=LaneState.IDLE)
    expect(ann.page.get_by_text("No subscriber is stopped.")).to_be_visible()
