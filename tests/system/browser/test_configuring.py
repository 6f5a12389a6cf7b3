"""The administrator configures in the browser: secrets are shown once, errors at their fields."""

import pytest
from playwright.sync_api import expect

from subscriptions.models import ApiKey, ConfigurationChange, Subscription
from subscriptions.models.api_key import hash_of
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_a_key_is_shown_on_the_next_page_and_never_again(ann: ConsoleVisitor) -> None:
    publisher = factories.publisher("teamforge")
    ann.page.goto(f"/admin/subscriptions/publisher/{publisher.pk}/change/")
    ann.page.get_by_role("link", name="New key for teamforge").click()
    ann.page.get_by_role("button", name="Save", exact=True).click()
    key = ann.page.locator("#secret").inner_text()
    assert ApiKey.objects.get().hash == hash_of(key)
    ann.photograph("key-shown-once")

    ann.page.reload()
    expect(ann.page.get_by_text("Already shown").first).to_be_visible()
    assert key not in ann.page.content()


def test_a_new_subscription_shows_its_secret_and_a_wrong_filter_its_position(
    ann: ConsoleVisitor,
) -> None:
    factories.subscriber("crm")
    factories.event_type("TeamForge.Artifact.Create")
    factories.policy("teamforge")
    ann.page.goto("/admin/subscriptions/subscription/add/")
    ann.page.get_by_label("Name", exact=False).first.fill("artifacts")
    for field, choice in (("subscriber", "crm"), ("event_type", "TeamForge.Artifact.Create")):
        ann.page.locator(f".field-{field} .select2-selection").click()
        ann.page.locator(".select2-results__option", has_text=choice).click()
    ann.page.locator("#id_endpoint").fill("https://127.0.0.1/hook")
    ann.page.locator("#id_filter").fill("$$->'Body'->>'id' = ")
    ann.page.get_by_role("button", name="Save", exact=True).click()
    expect(ann.page.locator("#id_filter_error")).to_contain_text("(line 1, column 20)")
    ann.photograph("subscription-wrong-filter")

    ann.page.locator("#id_filter").fill("$$->'Body'->>'id' = 'artf1008'")
    ann.page.get_by_role("button", name="Save", exact=True).click()
    assert ann.page.locator("#secret").inner_text().startswith("whsec_")
    subscription = Subscription.objects.get(name="artifacts")
    assert subscription.secrets.count() == 1
    change = ConfigurationChange.objects.get(object_type="subscription")
    assert (change.actor, change.action) == ("ann", "created")
