"""Deleting a subscription during a publication leaves no delivery without subscription."""

from collections.abc import Callable

import pytest
from django.db import IntegrityError

from delivery.calls.sync import exchange_message
from delivery.models import Delivery, Message
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import EventType, Kind, Subscription
from tests.races.transactions import meet
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def publishing(event_type: EventType) -> Callable[[], object]:
    publisher = factories.publisher()
    drafts = [Draft(event_type=event_type, headers={}, body=b"{}")] * 2
    return lambda: publish(publisher, drafts)


def test_a_subscription_receiving_a_message_is_not_deleted() -> None:
    subscription = factories.subscription()
    # The deletion sees no deliveries when it begins, and waits.
    refused = meet(publishing(subscription.event_type), subscription.delete)
    assert isinstance(refused, IntegrityError)
    assert "has deliveries" in str(refused)
    assert Delivery.objects.filter(subscription__name=subscription.name).count() == 2


def test_a_message_published_during_a_deletion_goes_to_the_other_subscriptions() -> None:
    other = factories.subscription()
    going = factories.subscription(event_type=other.event_type)
    assert meet(going.delete, publishing(other.event_type)) is None
    assert set(Delivery.objects.values_list("subscription", flat=True)) == {other.pk}
    assert (Message.objects.count(), Delivery.objects.count()) == (2, 2)


def test_a_sync_message_published_while_its_only_endpoint_is_deleted_calls_nobody() -> None:
    event_type = factories.event_type(kind=Kind.SYNC)
    going = factories.subscription(event_type=event_type)
    publisher = factories.publisher()
    draft = Draft(event_type=event_type, headers={}, body=b"{}")
    assert meet(going.delete, lambda: exchange_message(publisher, draft)) is None
    assert not Subscription.objects.exists()
    assert (Message.objects.count(), Delivery.objects.count()) == (1, 0)
