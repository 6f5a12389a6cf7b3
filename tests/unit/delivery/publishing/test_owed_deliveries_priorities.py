"""The priority of a delivery: from the message's header, for subscribers that send by priority."""

from typing import Any

import pytest

from delivery.models import Delivery, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import Kind, Mode, Processing, Subscriber
from tests.support import factories

pytestmark = pytest.mark.django_db


def by_priority() -> Subscriber:
    return factories.subscriber(processing=Processing.CONCURRENT, by_priority=True)


def priorities(owner: Subscriber, *sent: str | None, **fields: Any) -> list[int | None]:
    of = factories.subscription(subscriber=owner, **fields)
    drafts = [
        Draft(
            event_type=of.event_type,
            headers={} if priority is None else {"priority": priority},
            body=b"{}",
        )
        for priority in sent
    ]
    publish(factories.publisher(), drafts)
    found = Delivery.objects.filter(subscription=of).order_by("id")
    return list(found.values_list("priority", flat=True))


def test_the_header_is_a_digit_and_anything_else_is_usual() -> None:
    sent = ("9", " 0 ", None, "low", "10", "-1", "٣")
    assert priorities(by_priority(), *sent) == [9, 0, 4, 4, 4, 4, 4]


def test_others_in_the_same_batch_have_none() -> None:
    owner = by_priority()
    event_type = factories.event_type()
    serial = factories.subscription(event_type=event_type)
    assert priorities(owner, "9", "1", event_type=event_type) == [9, 1]
    assert {row.priority for row in Delivery.objects.filter(subscription=serial)} == {None}


def test_serial_subscribers_queues_and_mailboxes_ignore_it() -> None:
    serial = factories.subscriber(by_priority=True)
    queue = factories.event_type(kind=Kind.QUEUE)
    assert priorities(serial, "9") == [None]
    assert priorities(by_priority(), "9", event_type=queue) == [None]
    assert priorities(by_priority(), "9", mode=Mode.PULL) == [None]


def test_a_settled_and_reopened_delivery_has_no_priority() -> None:
    row = factories.delivery(
        subscription=factories.subscription(subscriber=by_priority()), priority=9
    )
    factories.settle(row, Status.REJECTED)
    assert Delivery.objects.get(pk=row.pk).priority is None
