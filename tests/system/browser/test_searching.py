"""An auditor or support finds a message by a word of its body, and browses the results."""

import pytest
from playwright.sync_api import expect

from delivery.states import OutcomeClass, Status
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)


def test_messages_are_searched_by_text_and_read_beside_the_list(ann: ConsoleVisitor) -> None:
    first = factories.message(b'{"note": "the needle"}')
    row = factories.delivery(
        Status.REJECTED, message=factories.message(b"a needle, too"), attempts=2
    )
    factories.attempt(
        row, number=1, outcome=OutcomeClass.TIMEOUT, status_code=None, error="no answer within 30 s"
    )
    factories.attempt(row, number=2, excerpt=b'{"error": "no such customer"}')
    factories.message(b"hay")
    page, pane = ann.page, ann.page.locator("#pane")
    page.goto("/admin/delivery/message/")
    page.get_by_label("Body contains").fill("needle")
    page.get_by_label("Body contains").press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(2)
    assert "since=" in page.url
    ann.photograph("messages-searched")
    # By the keyboard alone.
    page.get_by_role("link", name=row.message.public_id).focus()
    page.keyboard.press("Enter")
    expect(pane.get_by_role("heading", name=row.message.public_id)).to_be_visible()
    assert f"open={row.message_id}" in page.url
    ann.photograph("messages-split")
    page.keyboard.press("ArrowDown")
    expect(pane.locator("#body .inturn-pretty")).to_contain_text('"note": "the needle"')
    expect(pane.get_by_role("heading", name=first.public_id)).to_be_visible()
    expect(page.get_by_role("link", name=first.public_id, exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    page.reload()
    expect(pane.locator("#body .inturn-pretty")).to_contain_text('"note": "the needle"')
    page.get_by_role("button", name="Close").click()
    expect(pane).to_be_hidden()
    assert "open=" not in page.url
    assert "body=needle" in page.url


@pytest.mark.slow
def test_an_action_in_the_pane_returns_to_the_pane(ann: ConsoleVisitor) -> None:
    row = factories.delivery(Status.REJECTED)
    ann.page.goto("/admin/delivery/delivery/?status=REJECTED")
    ann.page.locator("#result_list").get_by_role("link", name=str(row.pk), exact=True).click()
    ann.page.locator("#pane").get_by_role("button", name="Resubmit", exact=True).click()
    expect(ann.page.get_by_text(f"Delivery {row.pk} is queued again")).to_be_visible()
    expect(
        ann.page.locator("#pane").get_by_role("heading", name=f"delivery {row.pk}")
    ).to_be_visible()
    assert "status=REJECTED" in ann.page.url


@pytest.mark.slow
def test_where_there_is_no_room_a_row_leads_to_its_page(ann: ConsoleVisitor) -> None:
    row = factories.delivery(Status.REJECTED)
    ann.page.set_viewport_size({"width": 390, "height": 860})
    ann.page.goto("/admin/delivery/delivery/")
    ann.page.locator("#result_list").get_by_role("link", name=str(row.pk), exact=True).click()
    ann.page.wait_for_url(f"**/delivery/{row.pk}/change/**")


def test_a_command_is_copied(ann: ConsoleVisitor) -> None:
    message = factories.message(b'{"number": 7}')
    ann.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ann.page.goto(f"/admin/delivery/message/{message.pk}/change/")
    ann.page.get_by_role("button", name="Copy as curl").click()
    expect(ann.page.get_by_role("button", name="Copied")).to_be_visible()
    copied = str(ann.page.evaluate("navigator.clipboard.readText()"))
    assert """body() { printf %s '{"number": 7}'; }""" in copied
    assert copied.endswith("--data-binary @-")


@pytest.mark.slow
def test_many_are_cancelled_after_a_question(ann: ConsoleVisitor) -> None:
    row = factories.delivery()
    ann.page.goto(f"/admin/delivery/delivery/?subscriber={row.subscription.subscriber.name}")
    ann.page.get_by_role("link", name="Cancel all matching open").click()
    expect(ann.page.get_by_text("1 delivery would be cancelled")).to_be_visible()
    ann.photograph("cancel-many")
    ann.page.once("dialog", lambda dialog: dialog.accept())
    ann.page.get_by_role("button", name="Cancel 1").click()
    expect(ann.page.get_by_role("heading", name="0 of 1")).to_be_visible()
    ann.photograph("cancellation-running")
