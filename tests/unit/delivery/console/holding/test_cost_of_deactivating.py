"""The cost of making a subscription INACTIVE counts the messages of the last day."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.console.holding import cost
from delivery.models import Message, Status
from tests.support import factories

pytestmark = pytest.mark.django_db

NONE = "Messages published meanwhile will not be kept; none came in the last 24 hours."


def test_waiting_messages_of_earlier_days_are_not_counted() -> None:
    old = factories.delivery(Status.PENDING)
    ids = [old.subscription_id]
    yesterday = timezone.now() - timedelta(days=1, minutes=1)
    Message.objects.filter(pk=old.message_id).update(published_at=yesterday)
    assert cost.cost_of_subscriptions(ids) == {ids[0]: NONE}
    factories.delivery(Status.PENDING, subscription=old.subscription)
    sentence = "About 1 message an hour will not be kept."
    assert cost.cost_of_subscriptions(ids) == {ids[0]: sentence}
    assert cost.cost_of_subscribers([old.subscription.subscriber_id]) == {
        old.subscription.subscriber_id: sentence
    }
