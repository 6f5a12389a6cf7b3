"""Fixtures for tests of the configuration's API."""

import pytest

from tests.support import factories
from tests.unit.subscriptions.api.client import Caller, caller


@pytest.fixture
def manager(db: None) -> Caller:
    """A caller who may configure everything."""
    return caller()


@pytest.fixture
def configured(manager: Caller) -> Caller:
    """The same caller, where the objects that a subscription refers to are stored."""
    factories.event_type("Order.Created")
    factories.subscriber("crm")
    return manager
