"""Successes at URLs with recorded health are written at intervals and before failures."""

import asyncio
from dataclasses import replace

import pytest
from django.db import connection

from delivery.models import Delivery, OutcomeClass, UrlHealth
from delivery.senders.commits.commit_statements import commit_statements
from delivery.senders.entries import Settlement
from delivery.senders.parcel import Endpoint
from delivery.senders.read_connection import ReadConnection
from delivery.senders.successes import Successes
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.senders.entries import settlement

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def subscription(transactional_db: None) -> Subscription:
    return factories.subscription(policy=factories.policy(breaks_circuit=True))


@pytest.fixture
def delivery(subscription: Subscription) -> Delivery:
    return factories.delivery(subscription=subscription)


@pytest.fixture
def endpoint(subscription: Subscription) -> Endpoint:
    async def reading() -> Endpoint:
        reader = ReadConnection(name="inturn reader test")
        try:
            (found,) = await reader.endpoints([subscription.pk])
            return found
        finally:
            await reader.close()

    return asyncio.run(reading())


def tried(of: Delivery, outcome: OutcomeClass = OutcomeClass.SUCCESS) -> Settlement:
    return settlement(of, outcome=outcome, counted_subscription_id=of.subscription_id)


def write(successes: Successes) -> None:
    async def writing() -> None:
        reader = ReadConnection(name="inturn reader test")
        try:
            await successes.write(reader)
        finally:
            await reader.close()

    asyncio.run(writing())


def test_a_success_is_committed_by_itself_and_counted_later(
    delivery: Delivery, endpoint: Endpoint
) -> None:
    successes = Successes()
    for _ in range(3):
        assert len(commit_statements([successes.count_success(tried(delivery), endpoint)])) == 1
    assert not UrlHealth.objects.exists()
    write(successes)
    write(successes)
    assert UrlHealth.objects.get().attempts == 3


def test_a_failure_is_judged_with_the_successes_before_it(
    delivery: Delivery, endpoint: Endpoint
) -> None:
    successes = Successes()
    for _ in range(3):
        successes.count_success(tried(delivery), endpoint)
    failed = successes.count_success(tried(delivery, OutcomeClass.SERVER_ERROR), endpoint)
    with connection.cursor() as cursor:
        for text, columns in commit_statements([failed]):
            cursor.execute(text, columns)
    write(successes)
    health = UrlHealth.objects.get()
    assert (health.attempts, health.failures, health.failures_in_row) == (4, 1, 1)


def test_a_success_at_a_disabled_url_is_written_at_once(
    delivery: Delivery, endpoint: Endpoint
) -> None:
    success = tried(delivery)
    assert Successes().count_success(success, replace(endpoint, is_disabled=True)) == success


def test_a_success_without_a_circuit_is_not_recorded(
    delivery: Delivery, endpoint: Endpoint
) -> None:
    success = settlement(delivery)
    assert Successes().count_success(success, endpoint) is success
