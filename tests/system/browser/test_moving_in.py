"""The pages for users of another broker: publish addresses, forwarded headers, and their guide."""

import re

import pytest
from playwright.sync_api import expect

from subscriptions.models import PublishId
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_a_publish_address_is_made_copied_and_rotated(ann: ConsoleVisitor) -> None:
    publisher = factories.publisher("jenkins")
    ann.page.goto(f"/admin/subscriptions/publisher/{publisher.pk}/change/")
    ann.page.get_by_role("button", name="Create a TeamForge publish address").click()
    shown = ann.page.locator("#secret")
    expect(shown).to_have_text(re.compile(r"/v4/inbox/\{eventName\}/[0-9a-f-]{36}$"))
    ann.photograph("publish-address")
    ann.page.get_by_role("link", name="Done").click()
    expect(ann.page.get_by_text(f"…{PublishId.objects.get().hint}")).to_be_visible()
    ann.page.get_by_role("button", name="Rotate the publish address").click()
    ann.page.get_by_role("link", name="Done").click()
    expect(ann.page.get_by_role("button", name="Revoke now").nth(1)).to_be_visible()
    ann.photograph("publisher-with-addresses")


def test_headers_to_send_along_are_typed_and_tried(ann: ConsoleVisitor) -> None:
    event_type = factories.event_type("GitHub.Push", forward_headers=["x-github-*"])
    row = factories.subscription("pushes", event_type=event_type)
    ann.page.goto(f"/admin/subscriptions/eventtype/{event_type.pk}/change/")
    expect(ann.page.get_by_label("Forwarded headers")).to_have_value("x-github-*")
    ann.photograph("event-type-with-headers")
    ann.page.goto(f"/admin/subscriptions/subscription/{row.pk}/change/")
    ann.page.get_by_label("Headers of the message").fill("X-GitHub-Event, X-Hub-*")
    ann.photograph("subscription-with-headers")
    ann.page.get_by_role("button", name="Save", exact=True).click()
    ann.page.goto(f"/admin/subscriptions/subscription/{row.pk}/test/")
    expect(ann.page.get_by_label("Headers of the message")).to_have_value("x-github-event: test")
    ann.photograph("test-message-with-headers")


def test_the_guide_has_a_page_for_those_who_come_from_teamforge(ann: ConsoleVisitor) -> None:
    ann.page.goto("/guide/teamforge/")
    expect(ann.page.get_by_role("heading", name="Publish addresses")).to_be_visible()
    ann.photograph("guide-teamforge")
