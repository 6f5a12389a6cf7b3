"""Each failure is published once, by a message whose own failure is not."""

from typing import Any

import orjson
import pytest
from django.db import connection, transaction

from delivery.database.statements import statement
from delivery.models import Delivery, FailureNotice, Message, Status
from delivery.publishing import failures
from delivery.support.resolve import cancel_delivery, mark_delivered
from delivery.support.resubmit import resubmit_delivery
from subscriptions.models import EventType, Subscription
from tests.support import factories

pytestmark = pytest.mark.django_db


def failed(status: Status = Status.REJECTED, **fields: Any) -> Delivery:
    """Create a failure as a sender leaves it: with its notice."""
    row = factories.delivery(status, **fields)
    FailureNotice.objects.create(delivery_id=row.pk, number=row.attempts)
    return row


def event_type() -> EventType:
    return EventType.objects.get(name="Inturn.Delivery.Failed")


def listening(**fields: Any) -> Subscription:
    return factories.subscription(event_type=event_type(), **fields)


def report() -> int:
    with transaction.atomic():
        return failures.publish_notices(limit=100)


def reported() -> list[dict[str, Any]]:
    messages = Message.objects.filter(event_type=event_type()).order_by("id")
    return [orjson.loads(bytes(message.body)) for message in messages]


def test_a_failure_has_the_form_of_the_sample() -> None:
    row = failed()
    assert report() == 1
    (body,) = reported()
    sample: dict[str, Any] = event_type().sample or {}
    assert body.keys() == sample.keys()
    assert body["attempt"].keys() == sample["attempt"].keys()
    attempt = row.history.get()
    assert body == {
        "delivery": row.pk,
        "message": row.message.public_id,
        "event": row.message.event_type.name,
        "publisher": row.message.publisher and row.message.publisher.name,
        "published_at": f"{row.message.published_at:%Y-%m-%dT%H:%M:%S.%f}Z",
        "destination": None,
        "subscriber": row.subscription.subscriber.name,
        "subscription": row.subscription.name,
        "status": "REJECTED",
        "attempts": 1,
        "redelivery": "",
        "attempt": {
            "number": 1,
            "started_at": f"{attempt.started_at:%Y-%m-%dT%H:%M:%S.%f}Z",
            "duration_ms": 5,
            "outcome": "CLIENT_ERROR",
            "status_code": 404,
            "error": "",
        },
    }


def test_a_failure_is_published_to_its_subscribers_like_any_message() -> None:
    row = failed()
    mine = listening(header_filter_string=row.subscription.subscriber.name)
    rejected = listening(filter="$$->'Body'->>'status' = 'REJECTED'")
    listening(header_filter_string="another")
    listening(filter="$$->'Body'->'attempt'->>'outcome' = 'TIMEOUT'")
    report()
    message = Message.objects.get(event_type=event_type())
    assert message.publisher is None
    assert {delivery.subscription_id for delivery in message.deliveries.all()} == {
        mine.pk,
        rejected.pk,
    }
    assert {delivery.status for delivery in message.deliveries.all()} == {Status.PENDING}


def test_each_failure_is_reported_once() -> None:
    for _ in range(3):
        failed()
    assert (report(), report()) == (3, 0)
    assert len(reported()) == 3
    assert not FailureNotice.objects.exists()


def test_the_oldest_failures_are_reported_first_in_batches() -> None:
    rows = [failed() for _ in range(3)]
    with transaction.atomic():
        assert failures.publish_notices(limit=2) == 2
    assert [body["delivery"] for body in reported()] == [row.pk for row in rows[:2]]


def test_no_plan_reads_more_than_the_limit() -> None:
    """Not even one that repeats the locking query for each row, which skips taken rows."""
    for _ in range(3):
        failed()
    ways = ("hashagg", "material", "sort", "indexscan", "indexonlyscan", "bitmapscan", "memoize")
    with transaction.atomic(), connection.cursor() as cursor:
        for way in ways:
            cursor.execute(f"SET LOCAL enable_{way} = off")
        assert failures.publish_notices(limit=2) == 2


def test_a_failure_is_reported_only_after_its_commit() -> None:
    failed()
    with transaction.atomic():
        assert failures.publish_notices(limit=1) == 1
        transaction.set_rollback(True)
    assert (reported(), FailureNotice.objects.count()) == ([], 1)


def test_a_repeated_failure_is_reported_again() -> None:
    row = failed()
    report()
    Delivery.objects.filter(pk=row.pk).update(attempts=2)
    FailureNotice.objects.create(delivery_id=row.pk, number=2)
    factories.attempt(row, number=2, status_code=410)
    report()
    assert [body["attempt"]["status_code"] for body in reported()] == [404, 410]


def test_a_failure_of_a_failure_message_is_not_reported() -> None:
    failed(subscription=listening())
    report()
    assert Message.objects.count() == 1
    assert not FailureNotice.objects.exists()


def test_an_untried_delivery_is_reported_without_an_attempt() -> None:
    failed(Status.EXPIRED)
    report()
    (body,) = reported()
    assert (body["status"], body["attempts"], body["attempt"]) == ("EXPIRED", 0, None)


def test_a_delivery_settled_by_a_person_is_not_reported() -> None:
    failed(Status.CANCELLED)
    assert report() == 1
    assert reported() == []


@pytest.mark.parametrize("act", [resubmit_delivery, mark_delivered, cancel_delivery])
def test_a_failure_is_reported_before_a_person_changes_it(act: Any) -> None:
    row = failed(Status.IN_DOUBT)
    act(row.pk, actor="ann")
    assert [body["status"] for body in reported()] == ["IN_DOUBT"]
    assert report() == 0


def test_failures_of_chosen_deliveries_are_found_without_reading_others() -> None:
    """The plan has no CASE any more: Django's statements are planned with their values."""
    FailureNotice.objects.bulk_create(
        FailureNotice(delivery_id=id, number=1) for id in range(1, 5_001)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE delivery_failurenotice")
        cursor.execute(
            f"EXPLAIN {statement('take_failures')}", {"limit": None, "delivery": [*range(1, 6)]}
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "failure_notice_of_an_attempt" in plan
    assert "CASE" not in plan
