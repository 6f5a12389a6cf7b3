"""Replies to a delivery at the same moment, and during settlement and retention."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.maintenance import retention
from delivery.models import Delivery, Message, Reply, Status
from delivery.publishing import replies
from delivery.publishing.drafts import Draft
from delivery.publishing.replies import ReplyRefusedError
from delivery.publishing.stored_messages import Accepted
from subscriptions.models import EventType, Kind
from tests.races.transactions import meet, unfinished, wait_until_somebody_waits_for
from tests.support import factories
from tests.unit.delivery.maintenance.retaining import old, past, run_whole

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def made() -> EventType:
    event_type = factories.event_type("Quote.Made")
    factories.subscription(event_type=event_type)
    return event_type


def sent(status: Status = Status.PENDING, **fields: object) -> Delivery:
    message = factories.message(headers={"replyto": "Quote.Made"})
    return factories.delivery(status, message=message, **fields)


def reply(to: Delivery, body: bytes, answers: list[Accepted] | None = None) -> None:
    replied = replies.find_replied(to.pk)
    event_type = replies.reply_target(replied).event_type
    draft = Draft(event_type=event_type, headers={}, body=body, content_type="application/json")
    accepted = replies.publish_reply(replied, draft)
    if answers is not None:
        answers.append(accepted)


def test_two_equal_replies_at_once_are_one(made: EventType) -> None:
    row, answers = sent(), list[Accepted]()
    same = partial(reply, row, b"1", answers)
    assert meet(same, same) is None
    assert len(answers) == 2
    assert answers[0] == answers[1] == Accepted(Message.objects.get(event_type=made).pk, 1)


def test_of_two_different_replies_at_once_the_later_is_refused(made: EventType) -> None:
    row = sent()
    refused = meet(partial(reply, row, b"1"), partial(reply, row, b"2"))
    assert isinstance(refused, ReplyRefusedError)
    assert refused.status == 409
    assert bytes(Message.objects.get(event_type=made).body) == b"1"


def test_of_two_endpoints_of_a_group_at_once_one_replies(made: EventType) -> None:
    queue = factories.event_type(kind=Kind.QUEUE)
    message = factories.message(event_type=queue, headers={"replyto": "Quote.Made"})
    first_reply, second_reply = (
        factories.delivery(
            message=message, subscription=factories.subscription(event_type=queue), queue_group=0
        )
        for _ in range(2)
    )
    assert isinstance(
        meet(partial(reply, first_reply, b"1"), partial(reply, second_reply, b"2")),
        ReplyRefusedError,
    )
    assert Reply.objects.get().delivery_id == first_reply.pk


def test_a_reply_that_dies_before_its_commit_leaves_the_next_one_to_count(made: EventType) -> None:
    row, answers = sent(), list[Accepted]()
    with pytest.raises(OperationalError):
        _meet_killed(partial(reply, row, b"1"), partial(reply, row, b"2", answers))
    assert answers == [Accepted(Message.objects.get(event_type=made).pk, 1)]
    assert bytes(Message.objects.get(event_type=made).body) == b"2"


def test_a_reply_waits_for_no_sender_and_no_sender_for_it(made: EventType) -> None:
    row, other = sent(), sent()
    with unfinished(partial(factories.settle, row, Status.DELIVERED)):
        reply(row, b"1")
    with unfinished(partial(reply, other, b"1")):
        factories.settle(other, Status.DELIVERED)
    assert Reply.objects.count() == 2
    assert set(Delivery.objects.filter(pk__in=[row.pk, other.pk]).values_list("status")) == {
        (Status.DELIVERED,)
    }


class TestDuringRetention:
    @pytest.fixture(autouse=True)
    def _removes_all(self, settings: Settings) -> None:
        settings.ENVIRONMENT = replace(
            settings.ENVIRONMENT,
            retention_unarchived=True,
            retention_days=dict.fromkeys(DEFAULT_DAYS, 1),
        )

    def test_a_message_that_is_being_replied_to_stays(self, made: EventType) -> None:
        row = _old()
        with unfinished(partial(reply, row, b"1")):
            # Does not wait for the reply.
            run_whole()
        assert Delivery.objects.filter(pk=row.pk).exists()
        run_whole()
        assert not Delivery.objects.filter(pk=row.pk).exists()
        assert not Reply.objects.exists()
        assert Message.objects.filter(event_type=made).exists()

    def test_a_message_that_is_being_removed_is_too_old_for_a_reply(self, made: EventType) -> None:
        row = _old()
        replied = replies.find_replied(row.pk)
        draft = Draft(event_type=made, headers={}, body=b"1")
        refused = meet(partial(_remove, row), partial(replies.publish_reply, replied, draft))
        assert isinstance(refused, ReplyRefusedError)
        assert refused.status == 410
        assert not Reply.objects.exists()
        assert not Message.objects.filter(event_type=made).exists()


def _old() -> Delivery:
    message = factories.message(headers={"replyto": "Quote.Made"}, published_at=past(400))
    return old(Status.DELIVERED, message=message)


def _remove(row: Delivery) -> None:
    retention.advance_pass(timezone.now())
    assert not Delivery.objects.filter(pk=row.pk).exists()


def _meet_killed(first: Callable[[], None], second: Callable[[], None]) -> None:
    """Run both, and end the connection of the first while the second waits for it."""
    with ThreadPoolExecutor(1) as thread, unfinished(first) as pid:
        waiting = thread.submit(_alone, second)
        wait_until_somebody_waits_for(pid)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        waiting.result(30)


def _alone(act: Callable[[], object]) -> None:
    try:
        act()
    finally:
        connections.close_all()
