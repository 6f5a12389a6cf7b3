"""Fixtures for tests of the API of messages and deliveries."""

import pytest

from subscriptions.models import Publisher, Scope
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller


@pytest.fixture
def manager(db: None) -> Caller:
    """A caller who may configure and read everything."""
    return caller()


@pytest.fixture
def configured(manager: Caller) -> Caller:
    """The same caller, where the objects that a subscription refers to are stored."""
    factories.event_type("Order.Created")
    factories.subscriber("crm")
    return manager


@pytest.fixture
def publisher(db: None) -> Publisher:
    return factories.publisher("shop")


@pytest.fixture
def publishing(publisher: Publisher) -> Caller:
    """A caller with the key of the publisher `shop`."""
    return caller(Scope.PUBLISH, publisher=publisher)
