"""Support reads the trace of a failed message, acts on the failure, and takes it to a ticket."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import expect

from delivery.models import Delivery, Message
from delivery.states import Status
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor
from tests.unit.delivery.console.traced import traced_message

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_failed_message_is_traced_resubmitted_and_exported(ann: ConsoleVisitor) -> None:
    traced = traced_message()
    page = ann.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/admin/delivery/message/{traced.message.pk}/change/")
    ann.photograph("message-traced")
    events = page.get_by_role("list", name="Events, oldest first")
    expect(events.get_by_text("by sue, in")).to_be_visible()
    expect(events.get_by_text("by bob")).to_be_visible()

    # Request and response of the last failure are open already.
    card = page.locator(f"#delivery-{traced.rejected.pk}")
    expect(card.get_by_text("no such customer").first).to_be_visible()

    body = page.locator("#body")
    expect(body.get_by_text('"customer": "Jürgen Müller"')).to_be_visible()
    page.get_by_role("group", name="Show JSON").get_by_label("Raw").last.check()
    expect(body.get_by_text("J\\u00fcrgen")).to_be_visible()
    page.locator("button[data-copy=body]").click()
    expect(page.locator("button[data-copy=body]")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == bytes(traced.message.body).decode()

    with page.expect_download() as downloading:
        page.get_by_role("link", name="Export for a ticket").click()
    text = Path(downloading.value.path()).read_text()
    assert "resubmitted    by bob" in text

    card.get_by_role("button", name="Resubmit", exact=True).click()
    resubmitted = events.get_by_role("listitem").filter(has_text="resubmitted")
    expect(resubmitted.filter(has_text="by ann")).to_have_count(1)
    assert Delivery.objects.get(pk=traced.rejected.pk).status == Status.PENDING
    card.get_by_role("link", name=f"delivery {traced.rejected.pk}").click()
    ann.photograph("delivery-traced")
    page.goto(f"/admin/delivery/delivery/{traced.scripted.pk}/change/")
    ann.photograph("delivery-scripted")


def test_the_readers_local_time_is_shown_beside_utc(ann: ConsoleVisitor) -> None:
    delivery = factories.delivery()
    moment = datetime(2026, 8, 2, 22, 15, 30, tzinfo=UTC)
    Message.objects.filter(pk=delivery.message_id).update(published_at=moment)
    page = ann.page
    zone = {"timezoneId": "Europe/Berlin"}
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", zone)
    page.goto(f"/admin/delivery/message/{delivery.message_id}/change/")
    published = page.locator("dd", has_text="2026-08-02 22:15:30.000 UTC")
    expect(published).to_contain_text("UTC (2026-08-03 00:15:30 CEST)")
    ago = published.locator("time").first
    ago.hover()
    expect(ago).to_have_attribute(
        "title", "2026-08-02 22:15:30.000 UTC\n2026-08-03 00:15:30 CEST, Europe/Berlin"
    )
    # Also in parts that are loaded later.
    added = '<p id="added"><time datetime="2026-08-02T10:15Z" data-local>10:15 UTC</time></p>'
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", added)
    expect(page.locator("#added")).to_have_text("10:15 UTC (12:15 CEST)")
