"""The endpoint state in the API: its lane's and the circuit breaker's, combined."""

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from delivery.models import Delivery, EndpointHealth, EndpointSummary, UrlHealth
from tests.support import factories
from tests.unit.delivery.api.client import Caller

URL = "https://down.example/hook"


@pytest.fixture
def delivery(db: None) -> Delivery:
    policy = factories.policy(breaks_circuit=True)
    return factories.delivery(
        subscription=factories.subscription(endpoint=f"PATCH:{URL}", policy=policy)
    )


def state(manager: Caller, delivery: Delivery) -> str:
    read = manager.get(f"subscriptions/{delivery.subscription_id}").body["endpoint_state"]
    (listed,) = manager.get("subscriptions").body["results"]
    assert listed["endpoint_state"] == read
    return str(read)


def test_the_breakers_state_precedes_the_lanes(manager: Caller, delivery: Delivery) -> None:
    assert state(manager, delivery) == "UP"
    factories.endpoint_down(delivery, reason="timed out")
    assert state(manager, delivery) == "DOWN"
    assert EndpointSummary.objects.get().reason == "timed out"
    health = UrlHealth.objects.create(
        url=URL, state="DISABLED", next_probe_at=timezone.now(), failures_in_row=7
    )
    assert state(manager, delivery) == "DISABLED"
    summary = EndpointSummary.objects.get()
    assert (summary.url, summary.since, summary.next_try_at) == (
        URL,
        health.since,
        health.next_probe_at,
    )
    assert summary.reason == "7 attempts at its URL failed in a row"
    health.state, health.next_probe_at = "FROZEN", None
    health.save()
    assert state(manager, delivery) == "FROZEN"
    health.state = "ENABLED"
    health.save()
    EndpointHealth.objects.all().delete()
    assert state(manager, delivery) == "UP"


def test_a_policy_without_breaker_has_no_url_health(manager: Caller) -> None:
    row = factories.delivery(subscription=factories.subscription(endpoint=URL))
    UrlHealth.objects.create(url=URL, state="FROZEN")
    assert state(manager, row) == "UP"


def test_a_change_answers_the_state_after_it(manager: Caller, delivery: Delivery) -> None:
    UrlHealth.objects.create(url="https://127.0.0.1/frozen", state="FROZEN")
    path = f"subscriptions/{delivery.subscription_id}"
    assert (
        manager.patch(path, {"endpoint": "https://127.0.0.1/frozen"}).body["endpoint_state"]
        == "FROZEN"
    )
    assert manager.patch(path, {"endpoint_state": "UP"}).status == 400


def test_a_mailbox_has_no_endpoint_state(manager: Caller, db: None) -> None:
    subscription = factories.subscription(mode="PULL")
    assert manager.get(f"subscriptions/{subscription.pk}").body["endpoint_state"] is None


def test_a_list_costs_no_query_more_for_many(
    manager: Caller, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(10):
        factories.subscription()
    # The key and its time of use, and the page.
    with django_assert_max_num_queries(4):
        manager.get("subscriptions")
