"""Ranges of messages: created ahead, dropped when they are empty, without blocking publishing."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.connections import connection_parameters
from delivery.maintenance import ranges
from delivery.models import Message, MessageRange, Status
from tests.support import factories
from tests.system.operation.installation import eventually
from tests.unit.delivery.maintenance.ranged import go_on_from, ids_put_back


def newest() -> MessageRange:
    return MessageRange.objects.order_by("first_id").last() or pytest.fail("there is no range")


def partition_of(message: Message) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tableoid::regclass::text FROM delivery_message WHERE id = %s", [message.pk]
        )
        (name,) = cursor.fetchone() or ("",)
    return str(name)


@pytest.fixture(autouse=True)
def one_range_ahead(db: None) -> Iterator[None]:
    with ids_put_back():
        go_on_from(MessageRange.objects.earliest("first_id").first_id + 1_000)
        while ranges.make_ahead():
            pass
        yield


class TestMakingAhead:
    def test_a_whole_range_is_always_ahead_of_the_newest_message(self) -> None:
        before = newest()
        assert not ranges.is_due(timezone.now())
        assert ranges.make_ahead() == 0
        go_on_from(before.first_id)
        message = factories.message()
        assert ranges.is_due(timezone.now())
        assert partition_of(message) == f"delivery_message_{before.first_id}"
        assert ranges.make_ahead() == 1
        assert newest().first_id == before.until_id
        assert newest().until_id == before.until_id + ranges.SMALLEST

    def test_a_range_has_as_many_messages_as_a_day(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = newest()
        monkeypatch.setattr(ranges, "SMALLEST", 10)
        go_on_from(before.first_id)
        factories.message()
        go_on_from(before.first_id + 500)
        factories.message()
        assert ranges.make_ahead() == 1
        assert newest().until_id - newest().first_id == pytest.approx(500, abs=1)

    def test_without_a_range_messages_are_stored_and_the_next_range_starts_behind_them(
        self,
    ) -> None:
        go_on_from(newest().until_id + 5_000)
        message = factories.message()
        delivered = factories.delivery(Status.DELIVERED, message=message)
        assert partition_of(message) == "delivery_message_rest"
        assert ranges.make_ahead() == 1
        assert newest().first_id > message.pk
        assert message.deliveries.get() == delivered


def drop(old: MessageRange) -> None:
    """Drop it as soon as no session, such as autovacuum, uses its tables."""
    eventually(lambda: ranges.drop_emptied(until_id=old.until_id) == 1, "the range is dropped")


class TestDropping:
    def test_an_empty_range_is_dropped(self) -> None:
        first = MessageRange.objects.earliest("first_id")
        drop(first)
        assert not MessageRange.objects.filter(pk=first.pk).exists()

    def test_a_range_that_does_not_end_before_the_message_stays(self) -> None:
        first = MessageRange.objects.earliest("first_id")
        assert ranges.drop_emptied(until_id=first.until_id - 1) == 0

    @pytest.mark.parametrize("status", [Status.PENDING, Status.DELIVERED])
    def test_a_range_with_a_delivery_stays(self, status: Status) -> None:
        first = MessageRange.objects.earliest("first_id")
        delivery = factories.delivery(status)
        assert delivery.message_id < first.until_id
        assert ranges.drop_emptied(until_id=first.until_id) == 0

    def test_a_message_of_a_dropped_range_is_stored(self) -> None:
        first = MessageRange.objects.earliest("first_id")
        drop(first)
        message = factories.message(pk=first.first_id + 7)
        assert partition_of(message) == "delivery_message_rest"


@pytest.mark.django_db(transaction=True)
def test_a_table_in_use_is_skipped_without_delaying_others() -> None:
    go_on_from(newest().first_id)
    factories.message()
    with psycopg.connect(**connection_parameters()) as reader:
        reader.execute("SELECT count(*) FROM delivery_message")
        assert ranges.make_ahead() == 0
        stored = threading.Event()

        def publish() -> None:
            factories.message()
            connection.close()
            stored.set()

        publisher = threading.Thread(target=publish)
        publisher.start()
        assert stored.wait(30)
        publisher.join()
    assert ranges.make_ahead() == 1
