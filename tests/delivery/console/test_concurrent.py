"""A CONCURRENT subscriber whose endpoint is down, as the console shows it."""

import pytest
from django.test import Client

from delivery.console import blocked
from delivery.models import Delivery
from delivery.states import Status
from subscriptions.models import Processing, Subscriber
from tests import factories
from tests.delivery.console.blocking import block

pytestmark = pytest.mark.django_db


@pytest.fixture
def crm() -> Subscriber:
    return factories.subscriber("crm", processing=Processing.CONCURRENT, max_in_flight=16)


@pytest.fixture
def head(crm: Subscriber) -> Delivery:
    head = factories.delivery(subscription=factories.subscription(subscriber=crm))
    factories.delivery(subscription=head.subscription)
    block(head)
    return head


def test_only_what_is_for_that_endpoint_waits(crm: Subscriber, head: Delivery) -> None:
    factories.delivery(subscription=factories.subscription(subscriber=crm))
    (lane,) = blocked.lanes(limit=10)
    assert (lane.delivery_id, str(lane.waiting), str(lane.freed)) == (head.pk, "1", "0")
    assert lane.unblocks == "Its messages are held; the others of this CONCURRENT subscriber flow."


def test_says_so_when_it_has_no_other_subscription(head: Delivery) -> None:
    assert blocked.lanes(limit=10)[0].unblocks == "Its messages are held; nothing else waits."


def test_it_is_shown_although_what_failed_last_is_settled(crm: Subscriber) -> None:
    block(factories.delivery(Status.FAILED, subscription=factories.subscription(subscriber=crm)))
    (lane,) = blocked.lanes(limit=10)
    assert not lane.may_skip


def test_the_list_of_subscribers_tells_how_many_at_once(ann: Client, crm: Subscriber) -> None:
    assert "CONCURRENT, 16 at once" in ann.get("/admin/subscriptions/subscriber/").text
