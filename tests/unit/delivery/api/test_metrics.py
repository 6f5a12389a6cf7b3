"""Prometheus metrics: totals at a bounded cost, in any state of the database."""

from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries

from delivery.api.metrics import InstallationCollector
from delivery.models import TrafficMark
from delivery.states import Status
from subscriptions.models import Mode, Processing
from tests.support import factories
from tests.unit.delivery.console.blocking import block, suspend

pytestmark = pytest.mark.django_db


def scraped() -> dict[str, float]:
    """Return Inturn's own metrics, by name and state."""
    text = Client().get("/metrics").text
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("inturn_")
    }


def test_pending_held_and_mailbox_deliveries_have_separate_metrics() -> None:
    now = timezone.now()
    waiting = factories.delivery(
        message=factories.message(published_at=now - timedelta(seconds=90))
    )
    factories.delivery(subscription=factories.subscription(status="INACTIVE"))
    factories.delivery(subscription=factories.subscription(mode=Mode.PULL))
    factories.delivery(Status.IN_DOUBT)
    found = scraped()
    assert found["inturn_up"] == 1
    assert found["inturn_backlog_deliveries"] == 3
    assert found["inturn_held_deliveries"] == 1
    assert found["inturn_mailbox_deliveries"] == 1
    assert found["inturn_in_doubt_deliveries"] == 1
    assert found["inturn_shadow_subscriptions"] == 0
    assert found["inturn_oldest_pending_seconds"] == pytest.approx(90, abs=20)
    assert waiting.status == Status.PENDING


def test_waiting_deliveries_of_a_shadow_subscription_are_held() -> None:
    factories.delivery(subscription=factories.subscription(status="SHADOW"))
    found = scraped()
    assert (found["inturn_shadow_subscriptions"], found["inturn_held_deliveries"]) == (1, 1)


def test_stopped_lanes_are_counted_by_state() -> None:
    for _ in range(2):
        block(factories.delivery())
    suspend(factories.delivery(attempts=5))
    found = scraped()
    assert (found["inturn_stopped_lanes BLOCKED"], found["inturn_stopped_lanes SUSPENDED"]) == (
        2,
        1,
    )
    assert (found["inturn_stopped_urls DISABLED"], found["inturn_stopped_urls FROZEN"]) == (0, 0)


def test_an_endpoint_down_in_a_lane_without_order_stops_no_lane() -> None:
    owner = factories.subscriber(processing=Processing.CONCURRENT)
    block(factories.delivery(subscription=factories.subscription(subscriber=owner)))
    found = scraped()
    assert (found["inturn_stopped_lanes BLOCKED"], found["inturn_down_endpoints"]) == (0, 1)


def test_counters_only_grow() -> None:
    assert "inturn_messages_accepted_total" not in scraped()
    now = timezone.now()
    TrafficMark.objects.create(pk=1, until=now, accepted=7, delivered=20, failed=3)
    found = scraped()
    assert found["inturn_messages_accepted_total"] == 7
    assert found["inturn_deliveries_delivered_total"] == 20
    assert found["inturn_deliveries_failed_total"] == 3
    assert found["inturn_traffic_counted_until_timestamp_seconds"] == pytest.approx(now.timestamp())


def test_the_cost_of_a_scrape_does_not_depend_on_the_backlog(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(3):
        block(factories.delivery())
    with django_assert_num_queries(8):
        list(InstallationCollector().collect())


def test_without_a_database_the_rest_is_answered() -> None:
    with patch(
        "django.db.backends.utils.CursorWrapper.execute", side_effect=OperationalError("gone")
    ):
        answer = Client().get("/metrics")
    assert answer.status_code == 200
    assert b"inturn_up 0.0" in answer.content
