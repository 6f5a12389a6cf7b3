"""A CONCURRENT subscriber whose endpoint is down, as the console shows it."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from delivery.console.lanes import stopped_lanes
from delivery.console.messages import next_try
from delivery.models import Delivery, EndpointHealth, Lane
from delivery.states import Status
from subscriptions.models import Processing, Subscriber
from tests.support import factories
from tests.unit.delivery.console.blocking import block

pytestmark = pytest.mark.django_db


@pytest.fixture
def crm() -> Subscriber:
    return factories.subscriber("crm", processing=Processing.CONCURRENT, max_in_flight=16)


@pytest.fixture
def head(crm: Subscriber) -> Delivery:
    head = factories.delivery(subscription=factories.subscription(subscriber=crm))
    factories.delivery(subscription=head.subscription)
    block(head)
    return head


def test_only_deliveries_of_the_failed_endpoint_wait(crm: Subscriber, head: Delivery) -> None:
    factories.delivery(subscription=factories.subscription(subscriber=crm))
    (lane,) = stopped_lanes.read_stopped_lanes(limit=10)
    assert (lane.delivery_id, str(lane.waiting), str(lane.freed)) == (head.pk, "1", "0")
    assert (
        lane.unblocks
        == "Its messages are held; other deliveries of this CONCURRENT subscriber continue."
    )


def test_all_endpoints_that_are_down_are_named(
    ann: Client, crm: Subscriber, head: Delivery
) -> None:
    assert stopped_lanes.read_stopped_lanes(limit=10)[0].downs == ""
    for number in range(11):
        row = factories.delivery(
            subscription=factories.subscription(f"hook-{number}", subscriber=crm)
        )
        factories.endpoint_down(row)
    factories.endpoint_down(factories.delivery())
    names = ", ".join([head.subscription.name, *(f"hook-{number}" for number in range(9))])
    assert (
        stopped_lanes.read_stopped_lanes(limit=10)[0].downs
        == f"12 endpoints are down: {names} and 2 more."
    )
    assert "12 endpoints are down" in ann.get("/admin/").text


def test_the_page_of_a_subscription_shows_its_endpoint_down(ann: Client, head: Delivery) -> None:
    page = f"/admin/subscriptions/subscription/{head.subscription_id}/"
    shown = ann.get(page).text
    assert "Its endpoint went down" in shown
    assert ": unreachable: connection refused" in shown
    EndpointHealth.objects.all().delete()
    assert "Its endpoint went down" not in ann.get(page).text


def test_a_waiting_delivery_shows_its_next_try(head: Delivery) -> None:
    health = EndpointHealth.objects.get()
    Lane.objects.update(run_is_concurrent=True)
    behind = Delivery.objects.exclude(pk=head.pk).get()
    later = timezone.now() + timedelta(hours=1)
    Delivery.objects.filter(pk=behind.pk).update(next_attempt_at=later)
    rows = list(Delivery.objects.select_related("subscription__policy", "lane").order_by("pk"))
    found = next_try.next_tries(rows)
    assert [found[row.pk].words for row in rows] == ["its endpoint is DOWN and is called again"] * 2
    assert [found[row.pk].at for row in rows] == [health.next_try_at, later]


def test_a_blocked_subscriber_without_other_subscriptions_says_so(head: Delivery) -> None:
    assert (
        stopped_lanes.read_stopped_lanes(limit=10)[0].unblocks
        == "Its messages are held; no other delivery waits."
    )


def test_a_lane_is_shown_although_its_last_failure_is_settled(crm: Subscriber) -> None:
    block(factories.delivery(Status.FAILED, subscription=factories.subscription(subscriber=crm)))
    (lane,) = stopped_lanes.read_stopped_lanes(limit=10)
    assert not lane.may_skip


def test_the_list_of_subscribers_shows_max_in_flight(ann: Client, crm: Subscriber) -> None:
    assert "CONCURRENT, 16 at once" in ann.get("/admin/subscriptions/subscriber/").text
