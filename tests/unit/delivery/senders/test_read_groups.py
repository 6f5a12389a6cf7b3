"""The groups that a queue sender reads: those with an endpoint that may be tried now."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.statements import statement
from delivery.models import Delivery, Lane, LaneKind, Message
from delivery.support import toggle
from subscriptions.models import EventType, Kind, SigningSecret, Subscription
from tests.support import factories
from tests.unit.delivery.senders.read_statements import fetch, independent_parameters, pages

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane() -> Lane:
    return Lane.objects.get(kind=LaneKind.QUEUE, number=0)


@pytest.fixture
def jobs() -> EventType:
    return factories.event_type(kind=Kind.QUEUE)


def read(lane: Lane, **fields: Any) -> list[int]:
    return [
        row["id"]
        for row in fetch(statement("read_groups"), independent_parameters(lane.pk, **fields))
    ]


def waiting(of: Subscription, message: Message, lane: Lane, **fields: Any) -> Delivery:
    return factories.delivery(subscription=of, message=message, lane=lane, queue_group=0, **fields)


def failed(of: Subscription, message: Message, lane: Lane, *, due_in: float) -> Delivery:
    due_at = timezone.now() + timedelta(seconds=due_in)
    return waiting(of, message, lane, attempts=1, skipped=True, next_attempt_at=due_at)


def test_an_endpoint_that_pauses_is_not_read_for_its_siblings_sake(
    lane: Lane, jobs: EventType
) -> None:
    first, second = (factories.subscription(event_type=jobs) for _ in range(2))
    message = factories.message(event_type=jobs)
    pausing, fresh = failed(first, message, lane, due_in=60), waiting(second, message, lane)
    assert read(lane) == [fresh.pk]
    Delivery.objects.filter(pk=pausing.pk).update(
        next_attempt_at=timezone.now() - timedelta(hours=1)
    )
    assert read(lane) == [pausing.pk, fresh.pk]


def test_of_old_failures_the_least_recently_tried_are_first(lane: Lane, jobs: EventType) -> None:
    of = factories.subscription(event_type=jobs)
    for _ in range(3):
        failed(of, factories.message(event_type=jobs), lane, due_in=-60)
    forgotten = failed(of, factories.message(event_type=jobs), lane, due_in=-3600)
    assert read(lane, rows=2) == [forgotten.pk]


def test_the_read_does_not_grow_with_the_number_of_subscriptions(
    lane: Lane, jobs: EventType
) -> None:
    of = factories.subscription(event_type=jobs)
    waiting(of, factories.message(event_type=jobs), lane)
    alone = buffers(lane)
    subscriber, policy = of.subscriber, of.policy
    Subscription.objects.bulk_create(
        Subscription(
            name=f"other {number}",
            subscriber=subscriber,
            event_type=jobs,
            policy=policy,
            endpoint=of.endpoint,
        )
        for number in range(2000)
    )
    SigningSecret.objects.exclude(subscription=of).delete()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE subscriptions_subscription")
    assert buffers(lane) < 2 * alone


def buffers(lane: Lane) -> int:
    return pages(statement("read_groups"), independent_parameters(lane.pk))


def test_the_others_of_a_group_get_what_a_held_member_would_have_got(
    lane: Lane, jobs: EventType
) -> None:
    first, second = (factories.subscription(event_type=jobs) for _ in range(2))
    message = factories.message(event_type=jobs)
    rows = [waiting(of, message, lane).pk for of in (first, second)]
    toggle.hold_owner(first, actor="ann")
    assert read(lane) == rows[1:]
    toggle.hold_owner(second, actor="ann")
    assert read(lane) == []
    for of in (first, second):
        toggle.activate_owner(of, actor="ann")
    assert read(lane) == rows
