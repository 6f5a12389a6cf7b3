"""Events during a SYNC call: in the database, by a person, on the connection."""

import logging
from collections.abc import Callable, Iterator

import psycopg
import pytest
from aiohttp import web
from django.db import connection

from delivery.calls import sync
from delivery.calls.sync import Exchange
from delivery.database.connections import connection_parameters
from delivery.models import Attempt, Delivery, FailureNotice, Message
from delivery.publishing.drafts import Draft, PublishRefusedError
from subscriptions.models import EventType, Kind, Publisher, Subscription
from tests.support import factories
from tests.support.receivers import Answer, Receiver, ReceiverEndpoint

pytestmark = pytest.mark.django_db(transaction=True)

Deed = Callable[["psycopg.Connection[tuple[object, ...]]"], object]


class ActingReceiver:
    """Acts on a connection of its own before it answers."""

    def __init__(self, deed: Deed, then: Answer) -> None:
        self._deed = deed
        self._then = then
        self.status = then.status

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        with psycopg.connect(**connection_parameters(), autocommit=True) as own:
            self._deed(own)
        return await self._then.answer(request)


@pytest.fixture
def rules(receiver: Receiver) -> ReceiverEndpoint:
    return receiver.endpoint("rules")


@pytest.fixture
def event_type() -> EventType:
    return factories.event_type("Order.Presubmit", kind=Kind.SYNC)


@pytest.fixture
def asked(event_type: EventType, rules: ReceiverEndpoint) -> Subscription:
    return factories.subscription("rules", event_type=event_type, endpoint=rules.url)


@pytest.fixture
def publisher() -> Publisher:
    return factories.publisher("shop")


def exchange(publisher: Publisher, event_type: EventType) -> Exchange:
    draft = Draft(event_type=event_type, headers={}, body=b"{}", content_type="application/json")
    return sync.exchange_message(publisher, draft)


def status_answered(ended: Exchange) -> int | None:
    return ended.called.answer.status_code if ended.called and ended.called.answer else None


def test_message_and_delivery_are_committed_before_the_endpoint_is_called(
    publisher: Publisher, event_type: EventType, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    seen: list[object] = []

    def look(own: "psycopg.Connection[tuple[object, ...]]") -> None:
        rows = own.execute(
            "SELECT status, reason, attempts, lane_id FROM delivery_delivery"
        ).fetchall()
        seen.extend(rows)

    rules.always(ActingReceiver(look, Answer(200)))
    exchange(publisher, event_type)
    assert seen == [("IN_DOUBT", "called, and no answer is recorded", 0, None)]
    assert Delivery.objects.get().status == "DELIVERED"


def test_a_connection_lost_during_the_call_does_not_lose_the_record(
    publisher: Publisher, event_type: EventType, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    def terminate(own: "psycopg.Connection[tuple[object, ...]]") -> None:
        others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database()"
        )
        # Vacuum's workers belong to no user, and are left alone.
        others += " AND usename = current_user AND pid <> pg_backend_pid()"
        own.execute(f"{others} AND application_name <> 'inturn notifier'".encode())

    rules.always(ActingReceiver(terminate, Answer(200)))
    assert status_answered(exchange(publisher, event_type)) == 200
    assert (Delivery.objects.get().status, Attempt.objects.count()) == ("DELIVERED", 1)


@pytest.fixture
def attempts_not_recordable() -> Iterator[Deed]:
    """Make the recording of attempts fail."""
    yield lambda own: own.execute("ALTER TABLE delivery_loggedattempt RENAME TO elsewhere")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE elsewhere RENAME TO delivery_loggedattempt")


def test_an_answer_is_returned_although_it_cannot_be_recorded(
    publisher: Publisher,
    event_type: EventType,
    asked: Subscription,
    rules: ReceiverEndpoint,
    attempts_not_recordable: Deed,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules.always(ActingReceiver(attempts_not_recordable, Answer(409, body=b"no")))
    with caplog.at_level(logging.ERROR, logger="delivery.calls.sync"):
        assert status_answered(exchange(publisher, event_type)) == 409
    assert [record.message for record in caplog.records] == ["answer to a SYNC call not recorded"]
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.attempts, delivery.reason) == ("IN_DOUBT", 0, sync.UNRECORDED)


@pytest.mark.parametrize("decided", ["CANCELLED", "DELIVERED"])
def test_a_persons_decision_during_the_call_stays_and_the_attempt_is_recorded(
    publisher: Publisher,
    event_type: EventType,
    asked: Subscription,
    rules: ReceiverEndpoint,
    decided: str,
) -> None:
    def decide(own: "psycopg.Connection[tuple[object, ...]]") -> None:
        own.execute("UPDATE delivery_delivery SET status = %s, reason = 'ann said so'", [decided])

    rules.always(ActingReceiver(decide, Answer(404)))
    exchange(publisher, event_type)
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.reason, delivery.attempts) == (decided, "ann said so", 1)
    assert Attempt.objects.get().status_code == 404
    assert not FailureNotice.objects.exists()


class ActingOnce:
    """Acts once between matching and storing."""

    def __init__(self, deed: Callable[[], object]) -> None:
        self._deed: Callable[[], object] | None = deed

    def __call__(self, execute: Callable[..., object], *statement: object) -> object:
        result = execute(*statement)
        if self._deed is not None and "subscriptions_signingsecret" in str(statement[0]):
            deed, self._deed = self._deed, None
            deed()
        return result


def test_a_subscription_deleted_before_the_message_is_stored_is_not_called(
    publisher: Publisher,
    event_type: EventType,
    asked: Subscription,
    rules: ReceiverEndpoint,
    receiver: Receiver,
) -> None:
    other = receiver.endpoint("other")
    factories.subscription("other", event_type=event_type, position=1, endpoint=other.url)
    with connection.execute_wrapper(ActingOnce(asked.delete)):
        exchange(publisher, event_type)
    assert (len(rules.received), len(other.received)) == (0, 1)
    assert Message.objects.count() == 1


def test_an_event_type_deleted_before_the_message_is_stored_is_reported(
    publisher: Publisher, event_type: EventType, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    def delete() -> None:
        asked.delete()
        EventType.objects.all().delete()

    with (
        connection.execute_wrapper(ActingOnce(delete)),
        pytest.raises(PublishRefusedError, match="has just been deleted") as refused,
    ):
        exchange(publisher, event_type)
    assert refused.value.status == 404
    assert rules.received == []
