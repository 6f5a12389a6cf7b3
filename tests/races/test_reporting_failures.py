"""Failure notices are published while deliveries settle, people act or configurations change.

Also the same Workfront subscription created twice at once.
"""

from functools import partial

import pytest
from django.db import transaction

from delivery.incoming.problems import Problem
from delivery.models import Delivery, FailureNotice, JournalEntry, Message, Status
from delivery.publishing import failures
from delivery.vendors.workfront import subscribing
from subscriptions.models import EventType, Subscriber, Subscription
from tests.races.transactions import meet, unfinished
from tests.support import factories
from tests.unit.delivery.publishing.test_failures import failed, listening, reported

pytestmark = pytest.mark.django_db(transaction=True)

WANTED = {
    "objCode": "PROJ",
    "eventType": "UPDATE",
    "url": "https://receiver.example/",
    "authToken": "t",
}


def report() -> int:
    with transaction.atomic():
        return failures.publish_notices(limit=100)


def group(*statuses: Status) -> list[Delivery]:
    """Create a QUEUE message about failed groups; a failure has a notice."""
    queue = factories.event_type(kind="QUEUE", errors_when="GROUP")
    message = factories.message(event_type=queue)
    fields = {"message": message, "queue_group": 0}
    return [
        (factories.delivery if status == Status.PENDING else failed)(
            status, subscription=factories.subscription(event_type=queue), **fields
        )
        for status in statuses
    ]


def fail(row: Delivery) -> None:
    """Settle it as a sender does, with the notice."""
    factories.settle(row, Status.EXPIRED)
    FailureNotice.objects.create(delivery_id=row.pk, number=0)


def test_a_sibling_that_fails_while_the_other_failure_is_taken_is_reported() -> None:
    _, last = group(Status.REJECTED, Status.PENDING)
    with unfinished(partial(fail, last)):
        report()
        assert reported() == []
    report()
    assert [body["delivery"] for body in reported()] == [last.pk]


def test_two_reports_at_once_report_a_group_once() -> None:
    _, last = group(Status.REJECTED, Status.REJECTED)
    assert meet(report, report) is None
    assert [body["delivery"] for body in reported()] == [last.pk]


def test_the_named_subscriber_cannot_be_deleted_while_it_is_notified() -> None:
    ops = listening(subscriber=factories.subscriber("ops"))
    failed(message=factories.message(headers={"errorsto": "ops"}))
    deleted = meet(report, lambda: Subscription.objects.get(pk=ops.pk).delete())
    assert deleted is not None
    message = Message.objects.get(event_type=EventType.objects.get(name="Inturn.Delivery.Failed"))
    assert [delivery.subscription_id for delivery in message.deliveries.all()] == [ops.pk]


def test_a_subscriber_deleted_first_is_not_notified_and_the_failure_is_published() -> None:
    ops, wanting = listening(subscriber=factories.subscriber("ops")), listening()
    failed(message=factories.message(headers={"errorsto": "ops"}))
    meet(lambda: Subscription.objects.get(pk=ops.pk).delete(), report)
    report()
    message = Message.objects.get(event_type=EventType.objects.get(name="Inturn.Delivery.Failed"))
    assert [delivery.subscription_id for delivery in message.deliveries.all()] == [wanting.pk]
    assert JournalEntry.objects.filter(kind="ERRORS_TO").count() == 1


def test_of_two_equal_workfront_subscriptions_one_is_created() -> None:
    create = partial(subscribing.create_subscription, WANTED, actor="ann")
    second = meet(create, create)
    assert isinstance(second, Problem)
    assert (second.status_code, second.code) == (409, "duplicate-subscription")
    assert (Subscription.objects.count(), Subscriber.objects.count()) == (1, 1)
