"""Resubmitted deliveries of mailboxes return to the mailbox, at their old place."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from delivery.lifecycle import transitions
from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.models import Delivery, Message, Status
from delivery.support import bulk_jobs, resolve, resubmit, toggle
from delivery.support.resubmit import Edit
from subscriptions.models import Mode, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.mailbox.box import (
    ENDED,
    FilledMailbox,
    ids,
    move,
    now_of,
    outcomes,
    public_ids,
    server_start,
    status_of,
)
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import finish

EDIT = Edit(
    headers={"content-type": "application/json"}, content_type="application/json", body=b'{"n": 2}'
)
DAYS = timedelta(days=settings.ENVIRONMENT.mailbox_days)


def settled(mailbox: FilledMailbox, status: Status) -> Delivery:
    (delivery,) = mailbox.put(
        status=status,
        receive_count=1,
        attempts=1,
        expires_at=timezone.now(),
        server_started_at=server_start(),
    )
    return delivery


@pytest.mark.parametrize("status", sorted(set(RESUBMITTABLE) - {Status.UNSUPPORTED}))
def test_a_resubmitted_message_returns_to_the_mailbox_with_its_whole_time(
    mailbox: FilledMailbox, status: Status
) -> None:
    delivery = settled(mailbox, status)
    (newer,) = mailbox.put()
    resubmit.resubmit_delivery(delivery.pk, actor="ann")
    again = now_of(delivery)
    assert (again.status, again.lane_id, again.next_attempt_at) == (Status.PENDING, None, None)
    assert (again.redelivery, again.server_started_at) == ("resubmitted", None)
    assert again.expires_at is not None
    assert abs(again.expires_at - timezone.now() - DAYS) < timedelta(minutes=5)
    messages = mailbox.next(2)
    assert ids(messages) == public_ids([delivery, newer])
    assert [message["receive_count"] for message in messages] == [2, 1]
    mailbox.say("ack", messages[0])
    assert outcomes(delivery)[-1] == (2, "ACKNOWLEDGED")


@pytest.mark.parametrize(
    "status", [Status.DELIVERED, Status.DUPLICATE, Status.PENDING, Status.IN_FLIGHT]
)
def test_received_or_open_messages_are_not_resubmitted(
    mailbox: FilledMailbox, status: Status
) -> None:
    (delivery,) = mailbox.put(status=status)
    with pytest.raises(resubmit.NotResubmittedError, match=f"It is {status}"):
        resubmit.resubmit_delivery(delivery.pk, actor="ann")


def test_a_receipt_of_before_does_not_count_any_more(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    transitions.cancel_deliveries([delivery.pk], actor="ann")
    resubmit.resubmit_delivery(delivery.pk, actor="ann")
    assert not mailbox.say("ack", message)
    assert status_of(delivery) == Status.PENDING


def test_an_edited_copy_goes_into_the_mailbox(mailbox: FilledMailbox) -> None:
    delivery = settled(mailbox, Status.REJECTED)
    copy = resubmit.resubmit_edited(delivery, EDIT, actor="ann")
    message = mailbox.one()
    assert (message["id"], message["body"]) == (
        Message.objects.get(pk=copy.message_id).public_id,
        {"n": 2},
    )
    held = Delivery.objects.get(pk=copy.delivery_id)
    assert held.lane_id is None
    assert held.expires_at is not None
    assert abs(held.expires_at - timezone.now() - DAYS) < timedelta(minutes=5)
    assert status_of(delivery) == Status.REJECTED


def test_an_edited_copy_has_the_ttl_of_its_event_type(mailbox: FilledMailbox) -> None:
    delivery = settled(mailbox, Status.REJECTED)
    event_type = delivery.message.event_type
    event_type.ttl_seconds = 60
    event_type.save()
    copy = resubmit.resubmit_edited(delivery, EDIT, actor="ann")
    expires_at = Delivery.objects.get(pk=copy.delivery_id).expires_at
    assert expires_at is not None
    assert expires_at - timezone.now() < timedelta(seconds=61)


def test_many_are_sent_again_by_filter(mailbox: FilledMailbox) -> None:
    failed = settled(mailbox, Status.FAILED)
    move(failed, settled_at=ENDED)
    job = bulk_jobs.start_job({"subscriber": mailbox.subscriber.name}, rate=None, actor="ann")
    assert (job.count, bulk_jobs.advance_job(job.next_at)) == (1, 1)
    assert status_of(failed) == Status.PENDING


def test_a_message_in_doubt_is_decided(mailbox: FilledMailbox) -> None:
    first, second = mailbox.put(2, status=Status.IN_DOUBT)
    resolve.mark_delivered(first.pk, actor="ann")
    resolve.cancel_delivery(second.pk, actor="ann")
    assert [status_of(delivery) for delivery in (first, second)] == [
        Status.DELIVERED,
        Status.CANCELLED,
    ]
    assert mailbox.next() == []


def test_an_activated_subscriptions_held_messages_are_handed_out(mailbox: FilledMailbox) -> None:
    put = mailbox.put(2)
    toggle.deactivate_owner(mailbox.subscription, actor="ann")
    assert mailbox.next(2) == []
    toggle.activate_owner(mailbox.subscription, backlog="deliver", actor="ann")
    assert ids(mailbox.next(2)) == public_ids(put)


def test_made_active_again_without_its_backlog_the_mailbox_is_empty(mailbox: FilledMailbox) -> None:
    out, waiting, put_off = mailbox.put(3)
    other = factories.subscription(subscriber=mailbox.subscriber, mode=Mode.PULL)
    (untouched,) = mailbox.put(subscription=other)
    mailbox.one()
    Delivery.objects.filter(pk=put_off.pk).update(next_attempt_at=timezone.now())
    toggle.deactivate_owner(mailbox.subscription, actor="ann")
    (job,) = toggle.activate_owner(mailbox.subscription, backlog="cancel", actor="ann")
    assert job is not None
    assert finish(job).changed == 3
    assert mailbox.subscription.status == SubscriptionStatus.ACTIVE
    assert {status_of(delivery) for delivery in (out, waiting, put_off)} == {Status.CANCELLED}
    assert ids(mailbox.next(10)) == public_ids([untouched])
