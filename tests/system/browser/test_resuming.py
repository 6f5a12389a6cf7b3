"""Support resumes a suspended lane and a frozen URL; the page updates itself."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from delivery.models import Delivery, Lane, UrlHealth
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor
from tests.unit.delivery.console.blocking import suspend

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

URL = "https://crm.example/hooks/artifacts?tenant=7"


@pytest.fixture
def top(transactional_db: None) -> Delivery:
    """A delivery that suspends crm's lane, with two behind it; billing's lane is probed."""
    orders = factories.subscription(
        "orders", subscriber=factories.subscriber("crm"), policy=factories.policy("webmethods")
    )
    probed = factories.subscription(
        "invoices",
        subscriber=factories.subscriber("billing"),
        probe_url="https://billing.example/health",
    )
    suspend(factories.delivery(subscription=probed, attempts=5), probes_in=timedelta(seconds=50))
    top = factories.delivery(subscription=orders, attempts=5, reason="500: out of order")
    for _ in range(2):
        factories.delivery(subscription=orders)
    suspend(top)
    return top


@pytest.fixture
def frozen(transactional_db: None) -> UrlHealth:
    """A frozen URL with two subscriptions, one of which has a message to be retried."""
    policy = factories.policy("workfront-48h")
    held = factories.subscription(
        "artifacts", subscriber=factories.subscriber("crm"), endpoint=URL, policy=policy
    )
    factories.subscription("audit", subscriber=factories.subscriber("archive"), endpoint=URL)
    due = timezone.now() + timedelta(minutes=21)
    retry_lane = Lane.objects.get(kind="RETRY")
    factories.delivery(
        subscription=held,
        lane=retry_lane,
        attempts=4,
        next_attempt_at=due,
        reason="503: overloaded",
    )
    UrlHealth.objects.create(url="https://a.example/", attempts=12, failures=1)
    UrlHealth.objects.create(
        url="https://b.example/hook",
        state="DISABLED",
        attempts=140,
        failures=120,
        failures_in_row=48,
        next_probe_at=timezone.now() + timedelta(minutes=8),
    )
    return UrlHealth.objects.create(
        url=URL,
        state="FROZEN",
        since=timezone.now() - timedelta(hours=5),
        attempts=2100,
        failures=2050,
        failures_in_row=2001,
        last_success_at=timezone.now() - timedelta(days=4),
    )


def test_a_suspended_lane_is_resumed_with_a_click(top: Delivery, ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/")
    row = ann.page.locator(".inturn-blocked tbody", has_text="waits for a person")
    for said in ("crm", "SUSPENDED", "500: out of order", top.message.public_id, "no probe URL"):
        expect(row).to_contain_text(said)
    ann.photograph("overview-suspended")
    row.get_by_role("button", name="Resume").click()
    expect(ann.page.get_by_text("crm is resumed.")).to_be_visible()
    top.refresh_from_db()
    assert top.lane is not None
    assert (top.lane.state, top.attempts_before) == ("BLOCKED", 5)
    ann.page.goto("/admin/delivery/lane/")
    ann.photograph("lanes-suspended")


def test_a_frozen_url_is_released_with_a_click(frozen: UrlHealth, ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/")
    ann.photograph("overview-retries")
    ann.page.get_by_role("link", name="1 FROZEN").click()
    ann.page.get_by_role("link", name=URL).click()
    expect(ann.page.get_by_text("crm/artifacts")).to_be_visible()
    ann.photograph("url-health-page")
    ann.page.get_by_role("button", name="Release").click()
    expect(ann.page.get_by_text(f"{URL} is released")).to_be_visible()
    frozen.refresh_from_db()
    assert (frozen.state, frozen.failures_in_row) == ("ENABLED", 0)


def test_pages_show_retried_deliveries_and_why_they_wait(
    frozen: UrlHealth, ann: ConsoleVisitor
) -> None:
    delivery = Delivery.objects.get()
    ann.page.goto("/admin/delivery/urlhealth/")
    ann.photograph("url-health")
    ann.page.goto(f"/admin/subscriptions/subscription/{delivery.subscription_id}/")
    expect(ann.page.get_by_text("1 in the retry lane")).to_be_visible()
    ann.photograph("subscription-retried")
    ann.page.goto(f"/admin/delivery/delivery/{delivery.pk}/change/")
    expect(ann.page.get_by_text("4 of 12")).to_be_visible()
    ann.photograph("delivery-retried")
    ann.page.goto(f"/admin/delivery/message/{delivery.message_id}/change/")
    ann.photograph("message-retried")
    ann.page.goto("/admin/delivery/delivery/")
    ann.photograph("deliveries-retried")


def test_a_queue_group_that_is_down_is_named_with_its_endpoints(ann: ConsoleVisitor) -> None:
    jobs = factories.event_type("Build.Requested", kind="QUEUE")
    message = factories.message(event_type=jobs)
    for number in (1, 2):
        failed = factories.delivery(
            subscription=factories.subscription(
                f"worker-{number}",
                subscriber=factories.subscriber(f"farm-{number}"),
                event_type=jobs,
                filter="$$->'Body'->>'size' = 'large'",
                endpoint=f"https://worker-{number}.builds.example/jobs",
            ),
            message=message,
            lane=Lane.objects.get(kind="QUEUE", number=1),
            queue_group=0,
            attempts=3,
            skipped=True,
            reason="unreachable: connection refused",
            next_attempt_at=timezone.now() + timedelta(seconds=20),
        )
        factories.endpoint_down(failed, reason=failed.reason)
    ann.page.goto("/admin/")
    group = ann.page.locator("section", has_text="Stopped queue groups")
    for said in ("Build.Requested", "farm-1/worker-1", "farm-2/worker-2", "connection refused"):
        expect(group).to_contain_text(said)
    ann.photograph("overview-groups")
