"""Resubmitting a settled delivery: the allowed ones, their places, and their kept history."""

from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from delivery.lifecycle import transitions
from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.models import (
    Callback,
    Delivery,
    JournalEntry,
    JournalKind,
    Lane,
    LaneKind,
    Message,
    Status,
)
from delivery.states import OPEN
from delivery.support.resubmit import (
    Edit,
    NotResubmittedError,
    resubmit_delivery,
    resubmit_edited,
    resubmit_some,
)
from subscriptions.models import ConfigurationChange, Kind, Subscription
from tests.support import factories

ACTOR = "ann"
EDIT = Edit(
    headers={"content-type": "application/json"}, content_type="application/json", body=b'{"n": 2}'
)
RECEIVED = (Status.DELIVERED, Status.REDUNDANT, Status.DUPLICATE)

pytestmark = pytest.mark.django_db


def lane_of(kind: LaneKind) -> Lane:
    return Lane.objects.get(kind=kind, number=0)


def group(*statuses: Status) -> list[Delivery]:
    """Create a QUEUE message with one group, an endpoint for each status."""
    event_type = factories.event_type(kind=Kind.QUEUE)
    message = factories.message(event_type=event_type)
    return [
        factories.delivery(
            status,
            message=message,
            queue_group=0,
            lane=lane_of(LaneKind.QUEUE),
            subscription=factories.subscription(event_type=event_type),
        )
        for status in statuses
    ]


def answered_callback() -> tuple[Callback, Delivery]:
    """Create a callback whose answer could not be delivered."""
    answer = factories.message()
    callback = Callback.objects.create(
        message=factories.message(),
        queue_group=0,
        url="https://caller.example/",
        answer=answer,
        answered_at=answer.published_at,
        expires_at=answer.published_at,
    )
    subscription = factories.subscription(event_type=answer.event_type)
    lane = lane_of(LaneKind.CALLBACK)
    row = factories.delivery(
        Status.REJECTED, message=answer, subscription=subscription, callback=callback, lane=lane
    )
    return callback, row


def now_of(row: Delivery) -> Delivery:
    return Delivery.objects.get(pk=row.pk)


@pytest.mark.parametrize("status", RESUBMITTABLE)
def test_a_failed_delivery_is_pending_again_with_all_attempts(status: Status) -> None:
    row = factories.delivery(status, attempts=3, reason="404 Not Found")
    before = now_of(row)
    resubmit_delivery(row.pk, actor=ACTOR)
    after = now_of(row)
    assert (after.status, after.settled_at, after.redelivery) == (
        Status.PENDING,
        None,
        "resubmitted",
    )
    assert (after.attempts, after.attempts_before, after.skipped) == (3, 3, False)
    assert after.reason == "resubmitted by ann"
    assert (after.lane_id, after.message_id) == (before.lane_id, before.message_id)
    entry = JournalEntry.objects.get()
    assert (entry.kind, entry.actor, entry.delivery_id) == (JournalKind.RESUBMITTED, ACTOR, row.pk)
    assert status in entry.text
    change = ConfigurationChange.objects.get()
    assert (change.actor, change.action, change.object_name) == (
        ACTOR,
        "resubmitted",
        f"delivery {row.pk}",
    )
    assert (change.before, change.after) == ({"status": status}, {"status": "PENDING"})


@pytest.mark.parametrize("status", RECEIVED)
def test_a_received_delivery_is_never_resubmitted(status: Status) -> None:
    row = factories.delivery(status)
    with pytest.raises(NotResubmittedError, match="not sent again"):
        resubmit_delivery(row.pk, actor=ACTOR)
    assert now_of(row).status == status
    assert not JournalEntry.objects.exists()


@pytest.mark.parametrize("status", OPEN)
def test_an_open_delivery_is_refused(status: Status) -> None:
    with pytest.raises(NotResubmittedError, match="on its way"):
        resubmit_delivery(factories.delivery(status).pk, actor=ACTOR)


def test_an_answer_to_a_waiting_publisher_is_not_sent_again() -> None:
    row = factories.delivery(Status.REJECTED, lane=None)
    with pytest.raises(NotResubmittedError, match="waits no more"):
        resubmit_delivery(row.pk, actor=ACTOR)
    with pytest.raises(NotResubmittedError, match="publish another"):
        resubmit_edited(row, EDIT, actor=ACTOR)


def test_a_failure_of_the_retry_lane_returns_to_its_subscribers_lane() -> None:
    row = factories.delivery(Status.FAILED, attempts=13, lane=lane_of(LaneKind.RETRY))
    resubmit_delivery(row.pk, actor=ACTOR)
    assert now_of(row).lane_id == row.subscription.subscriber.lane.pk


def test_a_cancelled_delivery_of_the_retry_lane_stays_there_and_is_due() -> None:
    """Its sender may have read it: in a second lane it would be sent twice."""
    row = factories.delivery(Status.CANCELLED, lane=lane_of(LaneKind.RETRY), attempts=2)
    resubmit_delivery(row.pk, actor=ACTOR)
    row.refresh_from_db()
    assert (row.status, row.lane) == (Status.PENDING, lane_of(LaneKind.RETRY))
    assert row.next_attempt_at is not None
    assert row.next_attempt_at <= timezone.now()


def test_an_answer_to_a_callback_stays_in_the_callback_lane() -> None:
    _, row = answered_callback()
    resubmit_delivery(row.pk, actor=ACTOR)
    assert now_of(row).lane_id == lane_of(LaneKind.CALLBACK).pk


class TestQueue:
    def test_a_group_member_keeps_its_queue_lane(self) -> None:
        refused, _ = group(Status.REJECTED, Status.REJECTED)
        resubmit_delivery(refused.pk, actor=ACTOR)
        assert (now_of(refused).status, now_of(refused).lane_id) == (
            Status.PENDING,
            refused.lane_id,
        )

    def test_a_group_with_a_delivered_member_is_not_resubmitted(self) -> None:
        refused, _ = group(Status.REJECTED, Status.DELIVERED)
        with pytest.raises(NotResubmittedError, match="Another endpoint"):
            resubmit_delivery(refused.pk, actor=ACTOR)
        assert now_of(refused).status == Status.REJECTED

    def test_another_group_of_the_message_is_no_obstacle(self) -> None:
        refused, taken = group(Status.REJECTED, Status.DELIVERED)
        Delivery.objects.filter(pk=taken.pk).update(queue_group=1)
        resubmit_delivery(refused.pk, actor=ACTOR)
        assert now_of(refused).status == Status.PENDING


class TestManyAtOnce:
    def test_chosen_deliveries_are_resubmitted_where_possible(self) -> None:
        rows = [factories.delivery(status) for status in Status]
        assert resubmit_some([row.pk for row in rows], actor=ACTOR) == len(RESUBMITTABLE)
        assert JournalEntry.objects.get().text == f"Sent again: {len(RESUBMITTABLE)} deliveries."
        assert ConfigurationChange.objects.count() == len(RESUBMITTABLE)

    def test_each_is_judged_by_itself(self) -> None:
        rows = [factories.delivery(status) for status in Status]
        with transaction.atomic():
            reopened = transitions.reopen_deliveries([row.pk for row in rows], reason="again")
        assert reopened == [row.pk for row in rows if row.status in RESUBMITTABLE]

    def test_an_empty_choice_does_nothing(self, django_assert_num_queries: Any) -> None:
        with django_assert_num_queries(0):
            assert transitions.reopen_deliveries([], reason="again") == []


class TestEdited:
    def edited(self, row: Delivery, edit: Edit = EDIT) -> tuple[Message, Delivery]:
        copy = resubmit_edited(row, edit, actor=ACTOR)
        return Message.objects.get(pk=copy.message_id), Delivery.objects.get(pk=copy.delivery_id)

    @pytest.mark.parametrize("status", sorted(set(Status) - set(OPEN)))
    def test_a_copy_is_a_message_of_its_own_for_the_one_subscription(self, status: Status) -> None:
        row = factories.delivery(status)
        factories.delivery(message=row.message, subscription=self.another(row))
        message, delivery = self.edited(row)
        assert (bytes(message.body), message.edited_from_id) == (EDIT.body, row.message_id)
        assert (message.publisher_id, message.event_type_id) == (None, row.message.event_type_id)
        assert (delivery.subscription_id, delivery.status) == (row.subscription_id, Status.PENDING)
        assert (delivery.lane_id, delivery.attempts, delivery.redelivery) == (row.lane_id, 0, "")
        assert Delivery.objects.filter(message=message).count() == 1
        assert now_of(row).status == status
        entry = JournalEntry.objects.get()
        assert (entry.kind, entry.delivery_id, entry.actor) == (
            JournalKind.RESUBMITTED,
            delivery.pk,
            ACTOR,
        )
        change = ConfigurationChange.objects.get()
        assert (change.actor, change.action, change.object_name) == (
            ACTOR,
            "resubmitted",
            message.public_id,
        )
        assert (
            entry.text == f"{row.message.public_id} was edited and is sent as {message.public_id}."
        )

    def another(self, row: Delivery) -> Subscription:
        return factories.subscription(event_type=row.message.event_type)

    def test_an_open_delivery_is_cancelled_first(self) -> None:
        with pytest.raises(NotResubmittedError, match="cancel it first"):
            self.edited(factories.delivery())
        assert Message.objects.count() == 1

    def test_a_copy_leaves_the_retry_lane(self) -> None:
        row = factories.delivery(Status.FAILED, lane=lane_of(LaneKind.RETRY))
        _, delivery = self.edited(row)
        assert delivery.lane_id == row.subscription.subscriber.lane.pk

    def test_a_queue_copy_goes_to_its_endpoint_in_the_lane_of_its_own_id(self) -> None:
        _, taken = group(Status.REDUNDANT, Status.DELIVERED)
        message, delivery = self.edited(taken)
        assert (delivery.queue_group, delivery.subscription_id) == (0, taken.subscription_id)
        assert delivery.lane_id == Lane.objects.get(kind=LaneKind.QUEUE, number=message.pk % 5).pk
        assert Delivery.objects.filter(message=message).count() == 1

    def test_a_queue_copy_has_a_callback_url_of_its_own(self) -> None:
        (refused,) = group(Status.REJECTED)
        headers = {"content-type": "text/plain", "callbackurl": "http://127.0.0.1:9/answer"}
        message, _ = self.edited(
            refused, Edit(headers=headers, content_type="text/plain", body=b"x")
        )
        assert Callback.objects.get().message_id == message.pk

    def test_a_copy_of_an_answer_goes_to_the_same_callback(self) -> None:
        callback, row = answered_callback()
        _, delivery = self.edited(row)
        assert (delivery.callback_id, delivery.lane_id) == (callback.pk, row.lane_id)

    def test_a_body_that_the_event_type_refuses_is_refused(self) -> None:
        row = factories.delivery(Status.REJECTED)
        wrong = Edit(headers={}, content_type="application/json", body=b"{")
        with pytest.raises(Exception, match="not JSON"):
            resubmit_edited(row, wrong, actor=ACTOR)
        assert Message.objects.count() == 1
