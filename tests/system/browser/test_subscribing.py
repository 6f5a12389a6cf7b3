"""The administrator sets up a subscription in the browser.

They try the filter, test the endpoint, move the subscription and read the catalogue.
"""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Dialog, expect

from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import EventType, SigningSecret, Subscription
from tests.support import factories
from tests.support.receivers import Answer, Receiver
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMA = {"type": "object", "properties": {"project": {"type": "object"}}}


@pytest.fixture
def event_type(transactional_db: None) -> EventType:
    """An event type with a sample, and twelve messages of three projects."""
    row = factories.event_type(
        "TeamForge.Artifact.Create",
        description="Somebody made an artifact in a tracker.",
        sample={"project": {"id": "proj1008"}, "title": "It does not start", "priority": 2},
        json_schema=SCHEMA,
    )
    drafts = [
        Draft(
            event_type=row,
            headers={"filter-string": f"proj100{number % 3}"},
            body=b'{"project": {"id": "proj100%d"}}' % (number % 3),
        )
        for number in range(12)
    ]
    publish(factories.publisher("teamforge"), drafts)
    return row


def test_a_filter_is_tried_before_it_is_saved(event_type: EventType, ann: ConsoleVisitor) -> None:
    page = ann.page
    page.goto(f"/admin/subscriptions/subscription/add/?event_type={event_type.pk}")
    page.locator("#id_filter").fill("$$->'Body'->'project'->>'id' = = 'proj1008'")
    expect(page.get_by_text("(line 1, column 32)")).to_be_visible()
    ann.photograph("filter-wrong")
    page.locator("#id_filter").fill("$$->'Body'->'project'->>'id' = 'proj1001'")
    expect(page.get_by_text("Valid filter.")).to_be_visible()
    page.get_by_text("Use your own message").click()
    page.get_by_label("Body", exact=True).fill('{"project": {"id": "proj1001"}}')
    page.get_by_role("button", name="Test the filter").click()
    expect(page.get_by_text("Would have matched 4 of the last 12 messages")).to_be_visible()
    tested = page.locator("#filter-tested")
    expect(tested).to_contain_text("no match the sample of TeamForge.Artifact.Create")
    expect(tested).to_contain_text("matches your own message")
    ann.photograph("filter-tried")
    assert not Subscription.objects.exists()


@pytest.mark.slow
def test_the_tester_is_reached_by_the_keyboard(event_type: EventType, ann: ConsoleVisitor) -> None:
    row = factories.subscription(
        event_type=event_type, filter="$$->'Body'->'project'->>'id' = 'proj1001'"
    )
    ann.page.goto(f"/admin/subscriptions/subscription/{row.pk}/change/")
    ann.page.locator("#id_filter").focus()
    ann.page.keyboard.press("Tab")
    expect(ann.page.get_by_text("Use your own message")).to_be_focused()
    ann.page.keyboard.press("Tab")
    ann.page.keyboard.press("Enter")
    expect(ann.page.get_by_text("Would have matched 4 of the last 12 messages")).to_be_visible()


@pytest.mark.slow
def test_a_test_message_is_sent_and_answered_on_the_page(
    event_type: EventType, ann: ConsoleVisitor, receiver: Receiver
) -> None:
    endpoint = receiver.endpoint("artifacts")
    endpoint.always(
        Answer(status=422, headers={"X-Trace": "t-1"}, body=b'{"error": "no such tracker"}')
    )
    row = factories.subscription(
        "artifacts",
        subscriber=factories.subscriber("crm"),
        event_type=event_type,
        endpoint=endpoint.url,
    )
    now = timezone.now()
    SigningSecret.objects.filter(subscription=row).update(
        created_at=now - timedelta(days=90), expires_at=now + timedelta(hours=20)
    )
    SigningSecret.objects.create(subscription=row)
    ann.page.goto(f"/admin/subscriptions/subscription/{row.pk}/")
    ann.photograph("subscription-secrets")
    ann.page.get_by_role("link", name="Send test message").click()
    expect(ann.page.get_by_role("button", name="Send test message")).to_be_visible()
    ann.photograph("test-message")
    ann.page.get_by_role("button", name="Send test message").click()
    expect(ann.page.get_by_text("no such tracker")).to_be_visible()
    ann.page.get_by_text("Response headers").first.click()
    ann.page.get_by_text("Request headers").click()
    ann.photograph("test-message-answered")
    (sent,) = endpoint.received
    assert sent.headers["inturn-test"] == "true"


@pytest.mark.slow
def test_an_old_secret_is_ended_after_a_question(
    ann: ConsoleVisitor, transactional_db: None
) -> None:
    row = factories.subscription()
    ann.page.goto(f"/admin/subscriptions/subscription/{row.pk}/")
    ann.page.once("dialog", Dialog.accept)
    ann.page.get_by_role("button", name="Rotate secret").click()
    ann.page.get_by_role("link", name="Done").click()
    ann.page.once("dialog", Dialog.accept)
    ann.page.get_by_role("button", name="Revoke now").click()
    expect(ann.page.get_by_text("no longer signs requests")).to_be_visible()
    expect(ann.page.get_by_role("button", name="Revoke now")).to_have_count(0)


@pytest.mark.slow
def test_endpoints_are_rewritten_after_a_look(event_type: EventType, ann: ConsoleVisitor) -> None:
    for name in ("artifacts", "documents", "long"):
        rest = "x" * 1975 if name == "long" else f"hooks/{name}?tenant=7"
        factories.subscription(
            name,
            subscriber=factories.subscriber(f"{name}-crm"),
            event_type=event_type,
            endpoint=f"https://127.0.0.1/{rest}",
        )
    ann.page.goto("/admin/subscriptions/subscription/")
    ann.photograph("subscriptions-rewrite-link")
    ann.page.get_by_role("link", name="Change endpoint URLs").click()
    expect(ann.page.get_by_role("heading", name="Select endpoint URLs")).to_be_visible()
    ann.photograph("rewrite")
    ann.page.get_by_label("Old beginning").fill("https://127.0.0.1/")
    ann.page.get_by_label("New beginning").fill("https://127.0.0.2:8443/inturn/")
    ann.page.get_by_role("button", name="Preview changes").click()
    expect(
        ann.page.get_by_role("heading", name="2 subscriptions would change, 1 would not")
    ).to_be_visible()
    ann.photograph("rewrite-plan")
    ann.page.get_by_role("button", name="Change 2").click()
    expect(ann.page.get_by_text("The URLs of 2 subscriptions were changed.")).to_be_visible()
    assert (
        Subscription.objects.filter(
            endpoint__startswith="https://127.0.0.2:8443/inturn/hooks/"
        ).count()
        == 2
    )


@pytest.mark.slow
def test_the_catalogue_shows_how_to_publish(event_type: EventType, ann: ConsoleVisitor) -> None:
    factories.subscription(event_type=event_type)
    factories.event_type("Quiet", kind="QUEUE")
    ann.page.goto("/admin/subscriptions/eventtype/")
    ann.photograph("event-types")
    ann.page.get_by_role("link", name="TeamForge.Artifact.Create", exact=True).click()
    expect(ann.page.locator("#publish-command")).to_contain_text(
        "/api/v1/events/TeamForge.Artifact.Create"
    )
    ann.photograph("event-type")


@pytest.mark.slow
def test_the_inactive_button_explains_its_effect_on_the_backlog(
    ann: ConsoleVisitor, transactional_db: None
) -> None:
    row = factories.subscription("orders", subscriber=factories.subscriber("crm"))
    for _ in range(3):
        factories.delivery(subscription=row)
    ann.page.goto(f"/admin/subscriptions/subscription/{row.pk}/")
    ann.page.get_by_role("button", name="Deactivate").click()
    expect(ann.page.get_by_text("Messages published while it is INACTIVE")).to_be_visible()
    ann.photograph("subscription-inactive")
    ann.page.get_by_role("button", name="Activate and deliver 3").click()
    expect(
        ann.page.get_by_text("is ACTIVE again; its held deliveries are sent in order")
    ).to_be_visible()
