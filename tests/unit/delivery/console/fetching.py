"""Deliveries of a mailbox that were fetched, or released."""

from datetime import timedelta

from django.utils import timezone

from delivery.models import Delivery
from delivery.states import Status
from subscriptions.models import Subscription
from tests.support import factories

SOON = timedelta(minutes=10)


def fetched(subscription: Subscription, *, ends_in: timedelta = SOON, count: int = 1) -> Delivery:
    return factories.delivery(
        Status.IN_FLIGHT,
        subscription=subscription,
        lease_expires_at=timezone.now() + ends_in,
        receive_count=count,
    )


def released(subscription: Subscription, *, until: timedelta = SOON) -> Delivery:
    return factories.delivery(
        subscription=subscription, next_attempt_at=timezone.now() + until, receive_count=1
    )
