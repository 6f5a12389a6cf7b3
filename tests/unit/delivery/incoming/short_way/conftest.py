"""The event type and the publisher of these tests."""

import pytest

from subscriptions.models import EventType, Mode, Scope, SubscriptionStatus
from tests.support import factories


@pytest.fixture
def key(transactional_db: None) -> str:
    return factories.api_key(Scope.PUBLISH, publisher=factories.publisher("builds"))[1]


@pytest.fixture
def wanted(key: str) -> EventType:
    """An event type with subscriptions of all kinds."""
    wanted = factories.event_type("Build.Done")
    factories.subscription(event_type=wanted)
    factories.subscription(event_type=wanted, mode=Mode.PULL, endpoint="")
    factories.subscription(event_type=wanted, filter="$$->'Body'->>'is' = 'red'")
    factories.subscription(event_type=wanted, header_filter_string="proj1008")
    factories.subscription(event_type=wanted, status=SubscriptionStatus.INACTIVE)
    return wanted
