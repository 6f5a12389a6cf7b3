"""Senders read neither overdue deliveries nor VOLATILE ones of an earlier server.

With the others they read when their time ends.
"""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from delivery.models import Delivery, Lane, LaneKind
from delivery.senders.clock import seconds_since_boot
from subscriptions.models import Processing
from tests.support import factories
from tests.unit.delivery.senders.test_reading import ids, lanes_with_work, read
from tests.unit.delivery.senders.test_reading_due import lane_id, retried
from tests.unit.delivery.senders.test_reading_due import read as read_due

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(seconds=60)


def expire(row: Delivery) -> None:
    Delivery.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def make_volatile(row: Delivery, *, of_earlier_server: bool) -> None:
    minutes = 1 if of_earlier_server else 0
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE delivery_delivery SET server_started_at = "
            "pg_postmaster_start_time() - make_interval(mins => %s) WHERE id = %s",
            [minutes, row.pk],
        )


def test_a_lanes_sender_reads_neither_and_learns_when_the_rest_expires() -> None:
    of = factories.subscription()
    rows = [factories.delivery(subscription=of) for _ in range(5)]
    expire(rows[0])
    make_volatile(rows[1], of_earlier_server=True)
    make_volatile(rows[2], of_earlier_server=False)
    Delivery.objects.filter(pk=rows[3].pk).update(expires_at=timezone.now() + MINUTE)
    volatile, perishable, lasting = parcels = read(of.subscriber.lane.pk)
    assert ids(parcels) == [row.pk for row in rows[2:]]
    assert [parcel.is_volatile for parcel in parcels] == [True, False, False]
    assert volatile.tries.is_only
    assert perishable.deadline is not None
    assert 50 < perishable.deadline - seconds_since_boot() <= 60
    assert lasting.deadline is None


def test_where_no_order_is_kept_neither_is_read() -> None:
    of = factories.subscription()
    due, expired, dropped = (retried(of) for _ in range(3))
    expire(expired)
    make_volatile(dropped, of_earlier_server=True)
    (row,) = read_due(LaneKind.RETRY)
    assert (row["id"], row["seconds_left"], row["server_started_at"]) == (due.pk, None, None)


def test_a_concurrent_lane_has_work_when_a_delivery_is_new_or_due() -> None:
    of = factories.subscription(subscriber=factories.subscriber(processing=Processing.CONCURRENT))
    put_off = factories.delivery(
        subscription=of, skipped=True, attempts=1, next_attempt_at=timezone.now() + MINUTE
    )
    assert of.subscriber.lane.pk not in lanes_with_work()
    Delivery.objects.filter(pk=put_off.pk).update(next_attempt_at=timezone.now())
    assert of.subscriber.lane.pk in lanes_with_work()
    put_off.delete()
    factories.delivery(subscription=of)
    assert of.subscriber.lane.pk in lanes_with_work()


def test_a_blocked_lane_has_work_although_no_delivery_is_due() -> None:
    of = factories.subscription(subscriber=factories.subscriber(processing=Processing.CONCURRENT))
    put_off = factories.delivery(
        subscription=of, skipped=True, attempts=1, next_attempt_at=timezone.now() + MINUTE
    )
    Lane.objects.filter(pk=of.subscriber.lane.pk).update(state="BLOCKED", delivery_id=put_off.pk)
    assert of.subscriber.lane.pk in lanes_with_work()
    assert lane_id(LaneKind.RETRY) not in lanes_with_work()
