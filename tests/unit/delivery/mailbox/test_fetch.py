"""Fetching from a mailbox: recipients, order, and the return of leased messages."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.statements import numbered
from delivery.mailbox import fetch as mailboxes
from delivery.models import Status
from subscriptions.models import SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.mailbox.box import (
    ENDED,
    FilledMailbox,
    box,
    end_visibility,
    ids,
    move,
    now_of,
    outcomes,
    public_ids,
    status_of,
)

LATER = timedelta(hours=1)


def test_an_empty_mailbox_answers_204(mailbox: FilledMailbox) -> None:
    answer = mailbox.ask("next")
    assert (answer.status, answer.content) == (204, b"")


def test_a_fetched_message_is_in_flight_until_its_visibility_ends(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    before = timezone.now()
    mailbox.one(visibility=600)
    held = now_of(delivery)
    assert held.status == Status.IN_FLIGHT
    assert held.lease_expires_at is not None
    assert held.leased_at is not None
    assert held.lease_expires_at - held.leased_at == timedelta(seconds=600)
    assert abs(held.leased_at - before) < timedelta(minutes=1)


def test_a_held_message_is_not_handed_out(mailbox: FilledMailbox) -> None:
    mailbox.put()
    mailbox.one()
    assert mailbox.next() == []


def test_the_default_visibility_is_half_a_minute(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    mailbox.one()
    held = now_of(delivery)
    assert held.lease_expires_at is not None
    assert held.leased_at is not None
    assert held.lease_expires_at - held.leased_at == timedelta(seconds=30)


def test_after_its_visibility_a_message_returns_with_a_new_receipt_and_a_higher_count(
    mailbox: FilledMailbox,
) -> None:
    (delivery,) = mailbox.put()
    first = mailbox.one()
    end_visibility(delivery)
    second = mailbox.one()
    assert second["id"] == first["id"]
    assert second["receipt"] != first["receipt"]
    assert (first["receive_count"], second["receive_count"]) == (1, 2)
    assert outcomes(delivery) == [(1, "UNACKNOWLEDGED")]
    assert now_of(delivery).attempts == 1


def test_a_visibility_of_0_leaves_the_message_available(mailbox: FilledMailbox) -> None:
    mailbox.put()
    assert [mailbox.one(visibility=0)["receive_count"] for _ in range(3)] == [1, 2, 3]


def test_the_oldest_is_handed_out_first(mailbox: FilledMailbox) -> None:
    put = mailbox.put(3)
    assert [mailbox.one()["id"] for _ in put] == public_ids(put)


def test_a_batch_is_in_order_and_at_most_as_large_as_max(mailbox: FilledMailbox) -> None:
    put = mailbox.put(5)
    assert ids(mailbox.next(3)) == public_ids(put[:3])
    assert ids(mailbox.next(3)) == public_ids(put[3:])


def test_returned_messages_precede_newer_waiting_ones(mailbox: FilledMailbox) -> None:
    put = mailbox.put(4)
    mailbox.next(2)
    end_visibility(*put[:2])
    assert ids(mailbox.next(3)) == public_ids(put[:3])


def test_of_returned_messages_the_oldest_is_first_whichever_ended_first(
    mailbox: FilledMailbox,
) -> None:
    put = mailbox.put(3)
    mailbox.next(3)
    for delivery, seconds in zip(put, [1, 3, 2], strict=True):
        move(delivery, lease_expires_at=-timedelta(seconds=seconds))
    assert [mailbox.one()["id"] for _ in put] == public_ids(put)


def test_waiting_messages_precede_newer_returned_ones(mailbox: FilledMailbox) -> None:
    other = factories.subscription(subscriber=mailbox.subscriber, mode="PULL", status="INACTIVE")
    (older,) = mailbox.put(subscription=other)
    (newer,) = mailbox.put()
    mailbox.one()
    end_visibility(newer)
    other.status = SubscriptionStatus.ACTIVE
    other.save()
    assert ids(mailbox.next(2)) == public_ids([older, newer])


def test_several_subscriptions_share_one_mailbox_and_one_order(mailbox: FilledMailbox) -> None:
    other = factories.subscription(subscriber=mailbox.subscriber, mode="PULL")
    put = [mailbox.put(subscription=of)[0] for of in (mailbox.subscription, other) * 3]
    assert ids(mailbox.next(4)) == public_ids(put[:4])
    assert ids(mailbox.next(4)) == public_ids(put[4:])


def test_push_deliveries_of_the_same_subscriber_are_not_in_the_mailbox(
    mailbox: FilledMailbox,
) -> None:
    pushed = factories.subscription(subscriber=mailbox.subscriber)
    (sent,) = mailbox.put(subscription=pushed)
    (pulled,) = mailbox.put()
    assert ids(mailbox.next(10)) == public_ids([pulled])
    assert status_of(sent) == Status.PENDING


def test_a_fetch_never_returns_messages_of_another_mailbox(mailbox: FilledMailbox) -> None:
    box().put()
    assert mailbox.next() == []


def test_an_overdue_message_is_not_handed_out(mailbox: FilledMailbox) -> None:
    old, *fresh = mailbox.put(3, expires_at=timezone.now() + LATER)
    move(old, expires_at=ENDED)
    assert ids(mailbox.next(10)) == public_ids(fresh)
    end_visibility(*fresh)
    move(fresh[0], expires_at=ENDED)
    assert ids(mailbox.next(10)) == public_ids(fresh[1:])


def test_a_delayed_message_is_handed_out_after_its_delay(mailbox: FilledMailbox) -> None:
    put_off, waiting = mailbox.put(2)
    move(put_off, next_attempt_at=LATER)
    assert ids(mailbox.next(10, visibility=0)) == public_ids([waiting])
    move(put_off, next_attempt_at=ENDED)
    assert ids(mailbox.next(10)) == public_ids([put_off, waiting])
    assert now_of(put_off).next_attempt_at is None


@pytest.mark.parametrize("received", [2, 3])
def test_a_message_at_max_receives_is_left_to_be_settled(db: None, received: int) -> None:
    mailbox = box(max_receives=3)
    (delivery,) = mailbox.put()
    for _ in range(received):
        mailbox.one()
        end_visibility(delivery)
    assert len(mailbox.next()) == (1 if received < 3 else 0)


def test_a_resubmitted_message_gets_its_receives_again(db: None) -> None:
    mailbox = box(max_receives=1)
    (delivery,) = mailbox.put(receive_count=1, attempts=1, attempts_before=1)
    assert mailbox.one()["receive_count"] == 2
    assert now_of(delivery).attempts == 1


@pytest.mark.parametrize(
    ("fields", "is_available"), [({}, True), ({"server_started_at": ENDED}, False)]
)
def test_volatile_messages_of_a_server_that_is_gone_are_not_handed_out(
    mailbox: FilledMailbox, fields: dict[str, Any], is_available: bool
) -> None:
    (delivery,) = mailbox.put()
    move(delivery, **fields)
    assert bool(mailbox.next()) == is_available


def test_an_inactive_subscription_holds_its_messages_back(mailbox: FilledMailbox) -> None:
    waiting, held = mailbox.put(2)
    message = mailbox.one()
    mailbox.subscription.status = SubscriptionStatus.INACTIVE
    mailbox.subscription.save()
    assert mailbox.next(10) == []
    assert mailbox.say("ack", message)
    assert [status_of(delivery) for delivery in (waiting, held)] == [
        Status.DELIVERED,
        Status.PENDING,
    ]


def test_large_messages_are_split_over_several_fetches(mailbox: FilledMailbox) -> None:
    third = mailboxes.ANSWER_BYTES // 3
    put = [mailbox.put(message=factories.message(bytes(third)))[0] for _ in range(5)]
    assert ids(mailbox.next(10)) == public_ids(put[:3])
    assert ids(mailbox.next(10)) == public_ids(put[3:])


def test_a_message_larger_than_a_response_comes_alone(mailbox: FilledMailbox) -> None:
    large = mailbox.put(message=factories.message(bytes(mailboxes.ANSWER_BYTES + 1)))
    small = mailbox.put()
    assert ids(mailbox.next(10)) == public_ids(large)
    assert ids(mailbox.next(10)) == public_ids(small)


@pytest.mark.parametrize(("depth", "member"), [(400, "body"), (1000, "body_base64")])
def test_a_deeply_nested_body_does_not_affect_other_messages(
    mailbox: FilledMailbox, depth: int, member: str
) -> None:
    deep = b"[" * depth + b"]" * depth
    put = [mailbox.put(message=factories.message(deep))[0], *mailbox.put()]
    messages = mailbox.next(10)
    assert ids(messages) == public_ids(put)
    assert [member in messages[0], "body" in messages[1]] == [True, True]


def test_a_wide_array_does_not_count_as_nested(mailbox: FilledMailbox) -> None:
    wide = b"[" + b",".join([b"[]"] * 5_000) + b"]"
    mailbox.put(message=factories.message(wide))
    assert len(mailbox.one()["body"]) == 5_000


def test_query_parameters_are_not_read_from_the_body(mailbox: FilledMailbox) -> None:
    mailbox.put(2)
    answer = mailbox.client.post(f"mailboxes/{mailbox.subscriber.name}/next", {"max": 2})
    assert answer.status == 400
    assert "in the address" in str(answer.body)


def test_others_that_are_lapsed_or_due_do_not_slow_a_fetch_down(mailbox: FilledMailbox) -> None:
    """With statistics from a time without leases, no plan may scan all mailboxes."""
    mailbox.put()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE delivery_delivery")
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        text, names = numbered("fetch")
        cursor.execute(f"PREPARE fetching AS {text.decode()}")
        cursor.execute(f"EXPLAIN EXECUTE fetching ({', '.join(['1'] * len(names))})")
        plan = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("DEALLOCATE fetching")
    assert "delivery_due" not in plan
    assert "Bitmap" not in plan
