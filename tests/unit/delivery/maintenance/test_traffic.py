"""Traffic is counted once, after any crash and late commit, off the path of a message."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from delivery.database.statements import statement
from delivery.maintenance import traffic
from delivery.maintenance.durations import BOUNDS_MS
from delivery.maintenance.loop import DUTIES
from delivery.models import Delivery, Message, SubscriptionTraffic, TrafficMark, TrafficMinute
from delivery.states import Status
from tests.races.transactions import unfinished
from tests.support import factories

MINUTE = timedelta(minutes=1)


def count_all() -> int:
    """Count until nothing is due, with a transaction per piece; return how many there were."""
    pieces = 0
    while True:
        with transaction.atomic():
            if not traffic.count_next_piece():
                return pieces
        pieces += 1


def ago(**span: float) -> datetime:
    return timezone.now() - timedelta(**span)


def settled(status: Status, at: datetime, **fields: object) -> Delivery:
    return factories.delivery(status, settled_at=at, **fields)


def totals() -> tuple[int, int, int]:
    mark = TrafficMark.objects.get()
    return mark.accepted, mark.delivered, mark.failed


@pytest.mark.django_db
class TestCounting:
    def test_events_of_a_minute_are_in_its_row(self) -> None:
        at = ago(minutes=5).replace(second=7)
        subscription = factories.subscription()
        for status in (Status.DELIVERED, Status.DELIVERED, Status.REJECTED, Status.UNSUPPORTED):
            message = factories.message(event_type=subscription.event_type, published_at=at)
            settled(status, at, message=message, subscription=subscription)
        count_all()
        row = TrafficMinute.objects.get(accepted__gt=0)
        assert row.at == at.replace(second=0, microsecond=0)
        assert (row.accepted, row.delivered, row.failed) == (4, 2, 2)
        assert totals() == (4, 2, 2)

    @pytest.mark.parametrize("status", Status)
    def test_delivered_and_failed_count_sent_and_failed_deliveries(self, status: Status) -> None:
        factories.delivery(status, message=factories.message(published_at=ago(minutes=5)))
        count_all()
        failed = {Status.REJECTED, Status.UNSUPPORTED, Status.FAILED, Status.EXPIRED}
        assert totals()[1:] == (status == Status.DELIVERED, status in failed)

    def test_subscriptions_are_counted_by_the_duration_of_the_last_attempt(self) -> None:
        at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
        subscription = factories.subscription()
        for minute, milliseconds in ((1, 3), (14, 3), (16, 3), (1, 5000)):
            made = settled(
                Status.DELIVERED,
                at + minute * MINUTE,
                attempts=2,
                subscription=subscription,
                lane=None,
            )
            factories.attempt(made, number=1, duration_ms=70)
            factories.attempt(made, number=2, duration_ms=milliseconds)
        fast, slow = (
            sum(bound <= milliseconds for bound in BOUNDS_MS) for milliseconds in (3, 5000)
        )
        count_all()
        rows = SubscriptionTraffic.objects.filter(subscription=subscription).values_list(
            "at", "step", "delivered"
        )
        quarter = timedelta(minutes=15)
        assert set(rows) == {(at, fast, 2), (at, slow, 1), (at + quarter, fast, 1)}

    def test_an_expired_delivery_adds_no_duration(self) -> None:
        made = settled(Status.EXPIRED, ago(minutes=3), attempts=1)
        factories.attempt(made, duration_ms=30_000)
        count_all()
        row = SubscriptionTraffic.objects.get()
        assert (row.step, row.failed) == (-1, 1)

    def test_events_of_the_last_seconds_wait(self) -> None:
        count_all()
        settled(Status.DELIVERED, timezone.now())
        assert count_all() == 0
        assert totals() == (0, 0, 0)


@pytest.mark.django_db
class TestMark:
    def test_no_event_is_counted_twice(self) -> None:
        settled(Status.DELIVERED, ago(minutes=3))
        count_all()
        assert count_all() == 0
        settled(Status.DELIVERED, ago(minutes=3))
        TrafficMark.objects.update(until=ago(seconds=60))
        count_all()
        assert totals()[1] == 1

    def test_later_events_are_added_to_a_started_minute(self) -> None:
        at = ago(minutes=3).replace(second=0, microsecond=0)
        settled(Status.DELIVERED, at)
        count_all()
        settled(Status.REJECTED, at + timedelta(seconds=40))
        TrafficMark.objects.update(until=at + timedelta(seconds=30))
        count_all()
        row = TrafficMinute.objects.get(at=at)
        assert (row.delivered, row.failed) == (1, 1)

    def test_a_crash_counts_nothing(self) -> None:
        settled(Status.DELIVERED, ago(minutes=3))
        with suppress(ZeroDivisionError), transaction.atomic():
            assert traffic.count_next_piece()
            raise ZeroDivisionError
        assert not TrafficMark.objects.exists()
        assert not TrafficMinute.objects.exists()
        count_all()
        assert totals()[1] == 1

    def test_time_without_chores_is_caught_up_in_short_pieces(self) -> None:
        for minutes in (2, 30, 30.5, 600):
            settled(Status.DELIVERED, ago(minutes=minutes))
        # One for each stretch with events, and one for the rest: not one for each minute.
        assert 3 <= count_all() <= 6
        assert totals()[1] == 4
        assert TrafficMark.objects.get().until > ago(seconds=10)

    def test_events_older_than_a_day_are_not_counted(self) -> None:
        settled(Status.DELIVERED, ago(hours=25))
        settled(Status.DELIVERED, ago(hours=23))
        count_all()
        assert totals()[1] == 1

    def test_old_counts_are_removed(self) -> None:
        subscription = factories.subscription()
        for hours in (1, 25, 49):
            TrafficMinute.objects.create(at=ago(hours=hours))
            SubscriptionTraffic.objects.create(
                subscription=subscription, at=ago(hours=hours), step=1
            )
        count_all()
        assert TrafficMinute.objects.filter(at__lt=ago(hours=48)).count() == 0
        assert TrafficMinute.objects.filter(at__lt=ago(hours=24)).count() == 1
        assert SubscriptionTraffic.objects.filter(at__lt=ago(hours=26)).count() == 0


@pytest.mark.django_db(transaction=True)
class TestOpenTransactions:
    def test_an_open_writing_transaction_delays_the_count(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(traffic, "LAG", timedelta(0))

        def settle() -> None:
            subscription = factories.subscription()
            settled(Status.DELIVERED, timezone.now(), subscription=subscription)

        with unfinished(settle):
            count_all()
            assert totals()[1] == 0
        monkeypatch.setattr(traffic, "TURN", timedelta(0))
        with transaction.atomic():
            traffic.count_next_piece()
        assert totals()[1] == 1

    def test_an_open_reading_transaction_does_not_delay_the_count(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(traffic, "LAG", timedelta(0))
        with unfinished(Message.objects.count):
            settled(Status.DELIVERED, timezone.now())
            count_all()
            assert totals()[1] == 1

    def test_an_open_transaction_does_not_delay_the_count_for_ever(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(traffic, "LAG", timedelta(0))
        monkeypatch.setattr(traffic, "LONGEST_LAG", timedelta(0))
        with unfinished(factories.delivery):
            settled(Status.DELIVERED, timezone.now())
            count_all()
            assert totals()[1] == 1


@pytest.mark.django_db
class TestCost:
    def test_counting_is_a_duty_of_the_chores(self) -> None:
        assert "traffic" in [duty.name for duty in DUTIES]

    def test_walks_indexes_of_time(self) -> None:
        subscription = factories.subscription()
        for _ in range(50):
            factories.delivery(Status.DELIVERED, subscription=subscription)
        asked: dict[str, Any] = {
            "since": ago(minutes=1),
            "until": timezone.now(),
            "failures": ["FAILED"],
            "bounds": [1.0],
        }
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {statement('count_traffic')}", asked)
            plan = "\n".join(row[0] for row in cursor.fetchall())
        for index in ("published_at_idx", "settled_at_idx", "delivery_loggedattempt"):
            assert index in plan
