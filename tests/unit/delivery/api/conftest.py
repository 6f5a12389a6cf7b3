"""Fixtures for tests of the API of messages and deliveries."""

import pytest

from subscriptions.models import Publisher, Scope
from tests.support import factories
from tests.unit.subscriptions.api.client import Caller, caller


@pytest.fixture
def manager(db: None) -> Caller:
    """A caller who may configure and read everything."""
    return caller()


@pytest.fixture
def publisher(db: None) -> Publisher:
    return factories.publisher("shop")


@pytest.fixture
def publishing(publisher: Publisher) -> Caller:
    """A caller with the key of the publisher `shop`."""
    return caller(Scope.PUBLISH, publisher=publisher)
