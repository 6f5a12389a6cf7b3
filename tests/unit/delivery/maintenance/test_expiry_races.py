"""An overdue delivery that another transaction settles: neither waits, the first counts."""

from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.db import connection, transaction
from django.utils import timezone

from delivery.database.statements import statement
from delivery.maintenance import expiry
from delivery.models import Delivery, FailureNotice, Lane, LaneKind, Status
from tests.races.transactions import unfinished
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def settle() -> int:
    with transaction.atomic():
        return expiry.settle_overdue(limit=100)


def deliver(row: Delivery) -> None:
    """Settle it as a sender commits a success."""
    Delivery.objects.filter(pk=row.pk, status=Status.PENDING).update(
        status=Status.DELIVERED, attempts=1, settled_at=timezone.now()
    )
    if row.queue_group is not None:
        group = {
            "message_id": row.message_id,
            "queue_group": row.queue_group,
            "delivery_id": row.pk,
        }
        with connection.cursor() as cursor:
            cursor.execute(statement("make_redundant"), {"rows": orjson.dumps([group]).decode()})


def status(row: Delivery) -> str:
    row.refresh_from_db()
    return row.status


@pytest.fixture
def past() -> Delivery:
    return factories.delivery(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.fixture
def group() -> list[Delivery]:
    event_type = factories.event_type(kind="QUEUE")
    fields: dict[str, Any] = {
        "message": factories.message(event_type=event_type),
        "lane": Lane.objects.get(kind=LaneKind.QUEUE, number=0),
        "queue_group": 0,
        "expires_at": timezone.now() - timedelta(seconds=1),
    }
    members = [factories.subscription(event_type=event_type) for _ in range(2)]
    return [factories.delivery(subscription=of, **fields) for of in members]


def test_a_success_that_is_being_committed_is_not_waited_for_and_counts(past: Delivery) -> None:
    with unfinished(lambda: deliver(past)):
        assert settle() == 0
    assert settle() == 0
    assert status(past) == Status.DELIVERED
    assert not FailureNotice.objects.exists()


def test_a_late_success_changes_nothing(past: Delivery) -> None:
    assert settle() == 1
    deliver(past)
    assert status(past) == Status.EXPIRED


@pytest.mark.parametrize("place", [0, 1])
def test_a_siblings_success_that_is_being_committed_makes_the_others_redundant(
    group: list[Delivery], place: int
) -> None:
    with unfinished(lambda: deliver(group[place])):
        assert settle() == 0
    assert settle() == 0
    assert (status(group[place]), status(group[1 - place])) == (Status.DELIVERED, Status.REDUNDANT)


def test_two_at_once_settle_each_but_once(past: Delivery) -> None:
    with unfinished(settle):
        assert settle() == 0
    assert FailureNotice.objects.count() == 1
    assert status(past) == Status.EXPIRED
