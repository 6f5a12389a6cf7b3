"""The search field by keyboard; tabs, filters, chips and saved views; lists that refresh."""

import re

import pytest
from playwright.sync_api import expect

from delivery.models import JournalEntry, JournalKind
from delivery.states import Status
from delivery.support import resolve
from subscriptions.models import Subscription
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cases(transactional_db: None) -> Subscription:
    return factories.subscription("cases", subscriber=factories.subscriber("shop-crm"))


def test_the_search_field_finds_by_keyboard_and_turns_queries_into_chips(
    ann: ConsoleVisitor, cases: Subscription
) -> None:
    row = factories.delivery(Status.REJECTED, subscription=cases)
    page, field = ann.page, ann.page.get_by_role("combobox", name="Find or do anything")
    options = page.get_by_role("option")
    page.goto("/admin/subscriptions/subscriber/")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    field.fill("roles")
    expect(options.filter(has_text="Roles").first).to_have_attribute("aria-selected", "true")
    ann.photograph("omnibox-pages")
    page.keyboard.press("Control+k")
    field.fill("hold cases")
    expect(options.first).to_contain_text("Hold shop-crm/cases")
    expect(options.first).to_have_attribute("aria-selected", "true")
    for key in ("ArrowDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(f"/subscription/{cases.pk}/"))
    field.fill("zebra")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    field.fill("subscriber:shop-crn")
    expect(page.get_by_text("Did you mean shop-crm?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox", name="Results")).to_be_hidden()
    # Enter before the results are there.
    field.fill("status:failed subscriber:shop-crm since:1h")
    page.keyboard.press("Enter")
    chip = page.get_by_role("link", name="Subscriber: shop-crm")
    expect(chip).to_be_visible()
    expect(page.get_by_role("link", name=str(row.pk), exact=True)).to_be_visible()
    ann.photograph("deliveries-chips")
    chip.click()
    expect(page).to_have_url(re.compile(r"\?tab=failed&since=1h$|\?since=1h&tab=failed$"))


def test_tabs_filters_and_saved_views_of_a_list(ann: ConsoleVisitor, cases: Subscription) -> None:
    factories.delivery(Status.REJECTED, subscription=cases)
    factories.delivery(Status.FAILED)
    factories.delivery()
    page = ann.page
    page.goto("/admin/delivery/delivery/")
    tabs = page.get_by_role("navigation", name="Tabs of the list")
    expect(tabs).to_contain_text(re.compile(r"All\s+3\s*Failed\s+2\s*Waiting\s+1\s*In doubt\s+0"))
    tabs.get_by_role("link", name="Failed").click()
    expect(tabs.get_by_role("link", name="Failed")).to_have_attribute("aria-current", "true")
    page.locator("summary").get_by_text("Filters").click()
    page.get_by_label("Subscription", exact=True).fill("shop-crm/cases")
    ann.photograph("deliveries-filters")
    page.get_by_role("button", name="Apply filters").click()
    expect(page).to_have_url(re.compile(r"\?tab=failed&subscription=shop-crm%2Fcases$"))
    expect(page.locator("#result_list tbody")).to_have_count(1)
    page.locator("summary").get_by_text("Save view").click()
    page.get_by_label("Name").fill("Failed cases")
    page.get_by_label("for everybody").check()
    ann.photograph("saved-view-form")
    page.get_by_role("button", name="Save", exact=True).click()
    view = page.get_by_role("navigation", name="Saved views").get_by_role("link")
    expect(view).to_have_attribute("aria-current", "true")
    page.goto("/admin/delivery/delivery/")
    view.click()
    expect(page.locator("#result_list tbody")).to_have_count(1)
    page.locator("summary").get_by_text("Edit view").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete view").click()
    expect(page.get_by_text("The view Failed cases is deleted.")).to_be_visible()
    expect(view).to_have_count(0)


def test_a_live_list_refreshes_its_rows_and_shows_new_ones_without_a_reload(
    ann: ConsoleVisitor,
) -> None:
    first, second = factories.delivery(), factories.delivery()
    page, rows = ann.page, ann.page.locator("#result_list tbody")
    page.goto("/admin/delivery/delivery/")
    page.evaluate("window.isStillHere = true")
    rows.last.get_by_role("checkbox").check()
    new = factories.delivery()
    resolve.cancel_delivery(second.pk, actor="ann")
    page.get_by_role("switch", name="Live").check()
    expect(rows.first).to_contain_text("CANCELLED")
    button = page.get_by_role("button", name="1 new: show")
    button.click()
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text(str(new.pk))
    expect(button).to_be_hidden()
    # The next refresh comes by itself.
    resolve.cancel_delivery(first.pk, actor="ann")
    expect(rows.last).to_contain_text("CANCELLED")
    expect(rows.last.get_by_role("checkbox")).to_be_checked()
    assert page.evaluate("window.isStillHere")


@pytest.mark.slow
def test_a_row_that_leaves_the_filters_turns_pale(ann: ConsoleVisitor) -> None:
    leaving, staying = factories.delivery(), factories.delivery()
    page = ann.page
    page.goto("/admin/delivery/delivery/?tab=waiting")
    resolve.cancel_delivery(leaving.pk, actor="ann")
    page.get_by_role("switch", name="Live").check()
    pale = page.locator("#result_list tbody.inturn-left")
    expect(pale).to_have_count(1)
    expect(pale).to_contain_text(str(leaving.pk))
    expect(page.get_by_role("link", name=str(staying.pk), exact=True)).to_be_visible()


@pytest.mark.slow
def test_a_refreshed_row_keeps_its_cells_with_local_times(ann: ConsoleVisitor) -> None:
    JournalEntry.objects.create(kind=JournalKind.HELD, text="held until 2026-08-02 22:15 UTC")
    page = ann.page
    zone = {"timezoneId": "Europe/Berlin"}
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", zone)
    page.goto("/admin/delivery/journalentry/")
    local = page.locator("#result_list .inturn-local")
    expect(local).to_have_text("(2026-08-03 00:15 CEST)")
    local.evaluate("shown => { shown.isStillHere = true; }")
    JournalEntry.objects.create(kind=JournalKind.HELD, text="held")
    page.get_by_role("switch", name="Live").check()
    # The rows are refreshed together with this number.
    expect(page.get_by_role("button", name="1 new: show")).to_be_visible()
    assert local.evaluate("shown => shown.isStillHere")
