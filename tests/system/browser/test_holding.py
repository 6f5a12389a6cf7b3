"""Support holds a blocked subscriber and releases it; an administrator holds all sending."""

import pytest
from playwright.sync_api import Page, expect

from delivery.models import Delivery
from subscriptions.models import Installation, Subscriber, Subscription
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor
from tests.unit.delivery.console.blocking import block

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def head(transactional_db: None) -> Delivery:
    """A delivery that blocks the subscriber crm, which has two subscriptions."""
    crm = factories.subscriber("crm")
    down, _ = (factories.subscription(name, subscriber=crm) for name in ("down", "well"))
    head = factories.delivery(subscription=down, attempts=3)
    block(head)
    return head


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_one_click_holds_a_blocked_subscriber_and_another_undoes_it(
    head: Delivery, ann: ConsoleVisitor
) -> None:
    ann.page.reload()
    expect(ann.page.get_by_text("About 1 message an hour will not be kept.").first).to_be_visible()
    ann.photograph("overview-blocked-hold")
    press(ann.page, "Hold crm")
    expect(ann.page.get_by_text("crm is HELD")).to_be_visible()
    expect(ann.page.get_by_text("No subscriber is stopped.")).to_be_visible()
    held = ann.page.locator("section", has_text="Held by a person")
    expect(held).to_contain_text("by ann")
    ann.photograph("overview-held")
    press(ann.page, "Undo")
    expect(ann.page.get_by_text("crm is ACTIVE again")).to_be_visible()
    assert Subscriber.objects.get().status == "ACTIVE"


@pytest.mark.slow
def test_one_click_makes_all_its_subscriptions_inactive_and_another_undoes_it(
    head: Delivery, ann: ConsoleVisitor
) -> None:
    ann.page.reload()
    press(ann.page, "Deactivate all 2")
    expect(ann.page.get_by_text("crm is INACTIVE")).to_be_visible()
    assert Subscriber.objects.get().status == "INACTIVE"
    assert set(Subscription.objects.values_list("status", flat=True)) == {"ACTIVE"}
    press(ann.page, "Undo")
    expect(ann.page.get_by_text("crm is ACTIVE again")).to_be_visible()
    assert Subscriber.objects.get().status == "ACTIVE"


@pytest.mark.slow
def test_a_banner_is_on_every_page_while_all_sending_is_held(
    head: Delivery, ann: ConsoleVisitor
) -> None:
    ann.page.get_by_role("link", name="Hold all sending").click()
    ann.photograph("sending")
    ann.page.get_by_label("deliveries per second").fill("5")
    press(ann.page, "Hold all sending")
    expect(ann.page.get_by_text("All sending is HELD: messages are stored")).to_be_visible()
    row = Installation.objects.get()
    assert (row.sending, row.catch_up_rate) == ("HELD", 5)
    ann.page.goto("/admin/subscriptions/subscriber/")
    banner = ann.page.locator("#sending-banner")
    expect(banner).to_contain_text("All sending is HELD.")
    ann.photograph("subscribers-banner")
    banner.get_by_role("link", name="Release it").click()
    press(ann.page, "Release all sending")
    expect(ann.page.locator("#sending-banner")).to_be_empty()
    assert Installation.objects.get().sending == "ACTIVE"


@pytest.mark.slow
def test_chosen_rows_of_the_lists_are_held_and_released(
    head: Delivery, ann: ConsoleVisitor
) -> None:
    for model, rows in (("subscription", Subscription), ("subscriber", Subscriber)):
        for action, status in (("hold_chosen", "HELD"), ("activate_chosen", "ACTIVE")):
            ann.page.goto(f"/admin/subscriptions/{model}/")
            ann.page.locator("#action-toggle").check()
            ann.page.locator("select[name=action]").select_option(action)
            press(ann.page, "Run")
            count = rows.objects.count()
            expect(ann.page.get_by_text(f"{count} of {count} are {status} now.")).to_be_visible()
        ann.photograph(f"{model}s-bulk")


@pytest.mark.slow
def test_a_subscribers_page_says_what_its_status_does(head: Delivery, ann: ConsoleVisitor) -> None:
    crm = Subscriber.objects.get()
    ann.page.goto(f"/admin/subscriptions/subscriber/{crm.pk}/")
    ann.page.get_by_text("Set an end of the hold").click()
    ann.page.get_by_label("Until (UTC, optional)").fill("2999-01-01T00:00")
    ann.photograph("subscriber-hold")
    press(ann.page, "Hold")
    expect(ann.page.get_by_text("crm is HELD until 2999-01-01 00:00 UTC")).to_be_visible()
    ann.photograph("subscriber-held")
