"""Several clients of a mailbox, each with a connection: no two get the same message."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
from django.db import OperationalError, connection, connections, transaction

from delivery.database.connections import connection_parameters
from delivery.database.statements import statement
from delivery.mailbox import fetch as mailboxes
from delivery.mailbox.fetch import LeasedMessage
from delivery.models import Attempt, Delivery, Status
from subscriptions.models import Mode, Subscription
from tests.races.transactions import backend, meet, unfinished
from tests.support import factories
from tests.unit.delivery.mailbox.box import (
    FilledMailbox,
    box,
    end_visibility,
    ids,
    now_of,
    public_ids,
    status_of,
)

CLIENTS = 6
# Server processes count fetches in so many rows (`delivery/mailbox/sql/fetch.sql`); two clients on
# the same connection wait for each other.
PLACES = 16

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mailbox(transactional_db: None) -> FilledMailbox:
    return box()


def fill(*subscriptions: Subscription, count: int) -> None:
    """Put so many messages into each subscription's mailbox at once."""
    for subscription in subscriptions:
        message = factories.message(event_type=subscription.event_type)
        rows = [
            Delivery(
                pk=factories.new_delivery_id(message), message=message, subscription=subscription
            )
            for _ in range(count)
        ]
        Delivery.objects.bulk_create(rows)


def drain(subscriber_id: int, begin: threading.Barrier, *, most: int) -> list[int]:
    """Fetch and acknowledge until the mailbox is empty, and return the fetched ids."""
    begin.wait(30)
    got: list[int] = []
    try:
        while fetched := mailboxes.fetch_messages(subscriber_id, most=most, visibility=600):
            got += [message.delivery_id for message in fetched]
            results = mailboxes.acknowledge_receipts(
                subscriber_id, [message.receipt for message in fetched]
            )
            assert not any(result.error for result in results)
    finally:
        connections.close_all()
    return got


def drain_together(mailbox: FilledMailbox, *, most: int) -> list[int]:
    begin = threading.Barrier(CLIENTS)
    with ThreadPoolExecutor(CLIENTS) as threads:
        draining = [
            threads.submit(drain, mailbox.subscriber.pk, begin, most=most) for _ in range(CLIENTS)
        ]
        return [id for client in draining for id in client.result(120)]


@pytest.mark.parametrize("most", [1, 10, 100])
def test_two_clients_never_hold_the_same_message(mailbox: FilledMailbox, most: int) -> None:
    fill(mailbox.subscription, count=20 * most)
    got = drain_together(mailbox, most=most)
    assert sorted(got) == sorted(Delivery.objects.values_list("pk", flat=True))
    assert set(Delivery.objects.values_list("status", "receive_count")) == {(Status.DELIVERED, 1)}


def test_two_clients_never_share_returned_messages_of_several_subscriptions(
    mailbox: FilledMailbox,
) -> None:
    others = [
        factories.subscription(subscriber=mailbox.subscriber, mode=Mode.PULL) for _ in range(3)
    ]
    fill(mailbox.subscription, *others, count=100)
    for _ in range(2):
        mailbox.next(100)
    end_visibility(*Delivery.objects.filter(status=Status.IN_FLIGHT))
    got = drain_together(mailbox, most=10)
    assert sorted(got) == sorted(Delivery.objects.values_list("pk", flat=True))
    assert Attempt.objects.filter(outcome="UNACKNOWLEDGED").count() == 200


@contextmanager
def another_client(act: Callable[[], object]) -> Iterator[None]:
    """Act as another client, whose transaction is committed when the block ends.

    The other client counts fetches in another row than this connection.
    """
    with unfinished(act) as other:
        while backend() % PLACES == other % PLACES:
            connection.close()
        yield


@contextmanager
def fetching(mailbox: FilledMailbox, *, most: int = 1) -> Iterator[list[LeasedMessage]]:
    """Fetch as another client, whose transaction is committed when the block ends."""
    got: list[LeasedMessage] = []
    with another_client(
        lambda: got.extend(
            mailboxes.fetch_messages(mailbox.subscriber.pk, most=most, visibility=30)
        )
    ):
        yield got


def test_a_fetch_skips_locked_messages_without_waiting(mailbox: FilledMailbox) -> None:
    put = mailbox.put(3)
    with fetching(mailbox, most=2) as got:
        assert ids(mailbox.next(2)) == public_ids(put[2:])
    assert [message.delivery_id for message in got] == [delivery.pk for delivery in put[:2]]


def test_a_fetch_does_not_wait_for_extensions_and_acknowledgements(mailbox: FilledMailbox) -> None:
    first, second = mailbox.put(2)
    message = mailbox.one()
    end_visibility(first)
    with another_client(
        partial(mailboxes.acknowledge_receipts, mailbox.subscriber.pk, [message["receipt"]])
    ):
        assert ids(mailbox.next(2)) == public_ids([second])
    assert status_of(first) == Status.DELIVERED


def test_a_locked_message_does_not_hide_later_ones(mailbox: FilledMailbox) -> None:
    *oldest, last = mailbox.put(13)
    receipts = [message["receipt"] for message in mailbox.next(12)]
    end_visibility(*oldest)
    with another_client(partial(mailboxes.acknowledge_receipts, mailbox.subscriber.pk, receipts)):
        assert ids(mailbox.next()) == public_ids([last])


def test_a_late_acknowledgement_that_meets_a_second_fetch_is_refused(
    mailbox: FilledMailbox,
) -> None:
    (delivery,) = mailbox.put()
    receipt = mailbox.one()["receipt"]
    end_visibility(delivery)
    results: list[mailboxes.ReceiptResult] = []

    def fetch() -> None:
        assert mailboxes.fetch_messages(mailbox.subscriber.pk, most=1, visibility=30)

    def acknowledge() -> None:
        results.extend(mailboxes.acknowledge_receipts(mailbox.subscriber.pk, [receipt]))

    assert meet(fetch, acknowledge) is None
    assert "fetched again since" in results[0].error
    assert status_of(delivery) == Status.IN_FLIGHT


def test_of_two_simultaneous_acknowledgements_both_succeed_and_one_counts(
    mailbox: FilledMailbox,
) -> None:
    (delivery,) = mailbox.put()
    receipt = mailbox.one()["receipt"]
    results: list[mailboxes.ReceiptResult] = []

    def acknowledge() -> None:
        results.extend(mailboxes.acknowledge_receipts(mailbox.subscriber.pk, [receipt]))

    assert meet(acknowledge, acknowledge) is None
    assert [result.error for result in results] == ["", ""]
    assert Attempt.objects.filter(delivery=delivery).count() == 1


def test_requests_that_name_the_same_receipts_in_other_orders_do_not_block_each_other(
    mailbox: FilledMailbox,
) -> None:
    mailbox.put(100)
    receipts = [message["receipt"] for message in mailbox.next(100)]
    begin = threading.Barrier(CLIENTS)

    def extend(number: int) -> None:
        begin.wait(30)
        try:
            for _ in range(5):
                order = receipts[number:] + receipts[:number]
                mailboxes.extend_receipts(
                    mailbox.subscriber.pk, order[:: -1 if number % 2 else 1], visibility=60
                )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(CLIENTS) as threads:
        for extending in [threads.submit(extend, number * 10) for number in range(CLIENTS)]:
            # A deadlock would raise an error here.
            extending.result(60)


def parameters(mailbox: FilledMailbox) -> dict[str, int]:
    return {
        "subscriber": mailbox.subscriber.pk,
        "most": 10,
        "reach": 10,
        "visibility": 30,
        "look": 10,
        "bytes": 1_000,
    }


def test_a_connection_lost_before_the_commit_fetches_nothing(mailbox: FilledMailbox) -> None:
    put = mailbox.put(3)
    with psycopg.connect(**connection_parameters()) as breaking:
        fetched = psycopg.Cursor(breaking).execute(statement("fetch").encode(), parameters(mailbox))
        assert len(fetched.fetchall()) == 3
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 20000)", [breaking.info.backend_pid])
        breaking.close()
    assert [(row.status, row.receive_count) for row in map(now_of, put)] == [
        (Status.PENDING, 0)
    ] * 3
    assert ids(mailbox.next(3)) == public_ids(put)


def test_an_acknowledgement_whose_connection_breaks_can_be_repeated(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()

    def break_off() -> None:
        with transaction.atomic():
            assert not mailboxes.acknowledge_receipts(mailbox.subscriber.pk, [message["receipt"]])[
                0
            ].error
            with psycopg.connect(**connection_parameters(), autocommit=True) as killer:
                backend = connection.connection.info.backend_pid
                killer.execute("SELECT pg_terminate_backend(%s, 20000)", [backend])

    with pytest.raises(OperationalError):
        break_off()
    connection.close()
    assert status_of(delivery) == Status.IN_FLIGHT
    assert mailbox.say("ack", message)
