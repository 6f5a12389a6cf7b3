"""The chart of the overview and the health of subscriptions in the browser."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from delivery.models import SubscriptionTraffic, TrafficMark, TrafficMinute
from subscriptions.models import Subscription
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor
from tests.unit.delivery.console.blocking import block

pytestmark = pytest.mark.django_db(transaction=True)

# The sums of the chart's data sets.
DRAWN = (
    "Chart.getChart('traffic-chart').data.datasets.map(set => set.data.reduce((a, b) => a + b, 0))"
)


@pytest.fixture
def day(transactional_db: None) -> Subscription:
    """A day of traffic, with an outage, up to this moment."""
    now = timezone.now()
    TrafficMark.objects.create(pk=1, until=now)
    begun = now.replace(second=0, microsecond=0)
    TrafficMinute.objects.bulk_create(
        TrafficMinute(
            at=begun - timedelta(minutes=age),
            accepted=1_500 + (age * 37) % 400,
            delivered=0 if 20 < age < 26 else 4_400 + (age * 91) % 900,
            failed=700 if 30 < age < 34 else age % 5,
        )
        for age in range(1, 24 * 60)
    )
    subscription = factories.subscription("orders", subscriber=factories.subscriber("crm"))
    quarter = begun - timedelta(seconds=begun.timestamp() % 900)
    SubscriptionTraffic.objects.bulk_create(
        SubscriptionTraffic(
            subscription=subscription,
            at=quarter - timedelta(minutes=15 * age),
            step=8 + age % 4,
            delivered=300 + 40 * (age % 9),
            failed=120 if age in (7, 8) else 0,
        )
        for age in range(90)
    )
    return subscription


@pytest.mark.slow
def test_the_chart_updates_without_reloading_the_page(
    day: Subscription, ann: ConsoleVisitor
) -> None:
    block(
        factories.delivery(
            message=factories.message(published_at=timezone.now() - timedelta(seconds=97))
        )
    )
    ann.page.goto("/admin/")
    ann.page.get_by_text("As a table").click()
    accepted, _, failed = ann.page.evaluate(DRAWN)
    assert accepted > 90_000
    ann.photograph("traffic-overview")
    ann.page.get_by_text("As a table").focus()
    TrafficMinute.objects.filter(failed__gte=700).update(failed=1_700)
    ann.page.wait_for_function(f"{DRAWN}[2] === {failed + 3_000}")
    expect(ann.page.locator("#traffic-table")).to_be_visible()
    assert ann.page.evaluate("document.activeElement.textContent") == "As a table"


@pytest.mark.slow
def test_the_last_day_is_in_the_address(day: Subscription, ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/")
    ann.page.get_by_role("link", name="Last day").press("Enter")
    expect(
        ann.page.get_by_text(re.compile(r"last day to \d\d:\d\d:\d\d UTC, per 15 minutes"))
    ).to_be_visible()
    assert ann.page.url.endswith("/admin/?span=day")
    ann.photograph("traffic-overview-day")


@pytest.mark.slow
def test_health_can_be_read_at_any_width(day: Subscription, ann: ConsoleVisitor) -> None:
    factories.subscription("quiet", subscriber=day.subscriber)
    for name, address in {
        "health-subscriptions": "subscription/",
        "health-subscribers": "subscriber/",
        "health-subscription": f"subscription/{day.pk}/",
        "health-subscriber": f"subscriber/{day.subscriber_id}/",
    }.items():
        ann.page.goto(f"/admin/subscriptions/{address}")
        ann.photograph(name)


@pytest.mark.slow
def test_a_subscriptions_health_loads_after_the_page(
    day: Subscription, ann: ConsoleVisitor
) -> None:
    ann.page.goto(f"/admin/subscriptions/subscription/{day.pk}/")
    ann.page.get_by_text("Set an end of the hold").click()
    ann.page.get_by_label("deliveries per second").fill("7")
    SubscriptionTraffic.objects.all().delete()
    expect(ann.page.get_by_text("No deliveries or permanent failures")).to_be_visible()
    expect(ann.page.get_by_label("deliveries per second")).to_have_value("7")
