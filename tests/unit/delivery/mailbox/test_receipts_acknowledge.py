"""Clients' reports on fetched messages: acknowledged, released, extended, rejected, late."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.lifecycle import transitions
from delivery.models import Attempt, Delivery, FailureNotice, JournalEntry, JournalKind, Status
from subscriptions.models import EventType
from tests.unit.delivery.api.client import refused
from tests.unit.delivery.mailbox.box import (
    ENDED,
    FilledMailbox,
    box,
    end_visibility,
    move,
    now_of,
    outcomes,
    server_start,
    status_of,
)

VERBS = ["ack", "release", "extend", "reject"]


def is_reported(delivery: Delivery) -> bool:
    return FailureNotice.objects.filter(delivery_id=delivery.pk).exists()


def test_an_acknowledged_message_is_delivered(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    assert mailbox.say("ack", mailbox.one())
    settled = now_of(delivery)
    assert (settled.status, settled.attempts, settled.reason) == (Status.DELIVERED, 1, "")
    assert settled.settled_at is not None
    assert (settled.lease_token, settled.lease_expires_at, settled.leased_at) == (None, None, None)
    assert outcomes(delivery) == [(1, "ACKNOWLEDGED")]
    assert not is_reported(delivery)
    assert mailbox.next() == []


def test_an_attempt_lasts_from_the_fetch_to_its_end(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    move(delivery, leased_at=-timedelta(seconds=7))
    mailbox.say("ack", message)
    attempt = Attempt.objects.get(delivery=delivery)
    assert attempt.duration_ms is not None
    assert 6_000 < attempt.duration_ms < 60_000
    assert attempt.started_at < timezone.now() - timedelta(seconds=6)


@pytest.mark.parametrize(
    ("verb", "status", "outcome"),
    [
        ("ack", "DELIVERED", "ACKNOWLEDGED"),
        ("release", "PENDING", "RELEASED"),
        ("reject", "REJECTED", "DECLINED"),
    ],
)
def test_a_repeated_acknowledgement_succeeds_and_changes_nothing(
    mailbox: FilledMailbox, verb: str, status: str, outcome: str
) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    assert mailbox.say(verb, message)
    was = now_of(delivery)
    assert mailbox.say(verb, message)
    again = now_of(delivery)
    assert (again.status, again.settled_at) == (status, was.settled_at)
    assert outcomes(delivery) == [(1, outcome)]


@pytest.mark.parametrize("verb", VERBS)
def test_late_but_not_fetched_since_counts(mailbox: FilledMailbox, verb: str) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    end_visibility(delivery)
    assert mailbox.say(verb, message)


@pytest.mark.parametrize("verb", VERBS)
def test_late_and_fetched_since_does_not_count(mailbox: FilledMailbox, verb: str) -> None:
    (delivery,) = mailbox.put()
    first = mailbox.one()
    end_visibility(delivery)
    second = mailbox.one()
    problem = refused(mailbox.ask(verb, [first["receipt"]]), 409, "receipt-does-not-count")
    assert "fetched again since" in problem["detail"]
    assert status_of(delivery) == Status.IN_FLIGHT
    assert mailbox.say(verb, second)


def test_late_after_another_has_acknowledged_it_does_not_count(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    first = mailbox.one()
    end_visibility(delivery)
    mailbox.say("ack", mailbox.one())
    problem = refused(mailbox.ask("ack", [first["receipt"]]), 409)
    assert "fetched again since, and is DELIVERED" in problem["detail"]


def test_an_acknowledgement_past_the_ttl_counts_while_the_delivery_is_unsettled(
    mailbox: FilledMailbox,
) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    move(delivery, lease_expires_at=ENDED, expires_at=ENDED)
    assert mailbox.say("ack", message)
    assert status_of(delivery) == Status.DELIVERED


@pytest.mark.parametrize("status", [Status.EXPIRED, Status.FAILED, Status.CANCELLED])
def test_an_acknowledgement_of_a_delivery_settled_meanwhile_is_refused_with_the_reason(
    mailbox: FilledMailbox, status: Status
) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    lease = {"lease_token": None, "lease_expires_at": None, "leased_at": None}
    Delivery.objects.filter(pk=delivery.pk).update(
        status=status, settled_at=timezone.now(), **lease
    )
    problem = refused(mailbox.ask("ack", [message["receipt"]]), 409)
    assert f"it is {status} since" in problem["detail"]
    assert status_of(delivery) == status


def test_a_released_message_cannot_be_acknowledged(mailbox: FilledMailbox) -> None:
    mailbox.put()
    message = mailbox.one()
    mailbox.say("release", message)
    problem = refused(mailbox.ask("ack", [message["receipt"]]), 409)
    assert "in the mailbox again" in problem["detail"]


def test_a_rejected_message_cannot_be_acknowledged(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    mailbox.say("reject", message)
    assert not mailbox.say("ack", message)
    assert status_of(delivery) == Status.REJECTED


def test_extended_it_stays_out_longer_from_now_on(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one(visibility=5)
    assert mailbox.say("extend", message, visibility=3600)
    held = now_of(delivery)
    assert held.lease_expires_at is not None
    assert held.lease_expires_at > timezone.now() + timedelta(minutes=50)
    assert (held.receive_count, outcomes(delivery)) == (1, [])
    assert mailbox.say("ack", message)


def test_extended_after_its_visibility_it_is_out_again(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    message = mailbox.one()
    end_visibility(delivery)
    mailbox.say("extend", message)
    assert mailbox.next() == []


def test_released_it_is_available_at_once(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    first = mailbox.one()
    assert mailbox.say("release", first)
    assert outcomes(delivery) == [(1, "RELEASED")]
    assert mailbox.one()["receive_count"] == 2


def test_released_with_a_delay_it_is_available_after_that(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    assert mailbox.say("release", mailbox.one(), delay=600)
    assert mailbox.next() == []
    released = now_of(delivery)
    assert released.status == Status.PENDING
    assert released.next_attempt_at is not None
    assert timedelta(minutes=9) < released.next_attempt_at - timezone.now() < timedelta(minutes=11)
    move(delivery, next_attempt_at=ENDED)
    assert mailbox.one()["receive_count"] == 2


def test_a_rejected_message_is_settled_and_reported(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    assert mailbox.say("reject", mailbox.one())
    settled = now_of(delivery)
    assert (settled.status, settled.reason) == (Status.REJECTED, "rejected by the subscriber")
    assert outcomes(delivery) == [(1, "DECLINED")]
    assert is_reported(delivery)
    assert mailbox.next() == []


def test_a_failure_message_that_fails_is_not_reported(db: None) -> None:
    mailbox = box(event_type=EventType.objects.get(name="Inturn.Delivery.Failed"))
    (delivery,) = mailbox.put()
    mailbox.say("reject", mailbox.one())
    assert status_of(delivery) == Status.REJECTED
    assert not is_reported(delivery)


def test_released_as_often_as_it_may_be_received_it_has_failed(db: None) -> None:
    mailbox = box(max_receives=2)
    (delivery,) = mailbox.put()
    mailbox.say("release", mailbox.one())
    assert status_of(delivery) == Status.PENDING
    last = mailbox.one()
    assert mailbox.say("release", last)
    assert status_of(delivery) == Status.FAILED
    # A client that got no answer repeats the request.
    assert mailbox.say("release", last)
    assert not mailbox.say("ack", last)
    assert outcomes(delivery) == [(1, "RELEASED"), (2, "RELEASED")]
    assert is_reported(delivery)
    assert JournalEntry.objects.get(delivery_id=delivery.pk).kind == JournalKind.FAILED


def test_a_volatile_one_is_handed_out_once(mailbox: FilledMailbox) -> None:
    released, lapsed = mailbox.put(2, server_started_at=server_start())
    message, _ = mailbox.next(2)
    mailbox.say("release", message)
    end_visibility(lapsed)
    assert mailbox.next(2) == []
    assert status_of(released) == Status.FAILED
    assert is_reported(released)


def test_cancelling_takes_a_message_from_its_holder(mailbox: FilledMailbox) -> None:
    waiting, out = mailbox.put(2)[::-1]
    message = mailbox.one()
    assert transitions.cancel_deliveries([waiting.pk, out.pk], actor="ann") == 2
    assert [status_of(delivery) for delivery in (waiting, out)] == [Status.CANCELLED] * 2
    assert (outcomes(waiting), outcomes(out)) == ([], [(1, "UNACKNOWLEDGED")])
    assert now_of(out).attempts == 1
    assert "CANCELLED" in refused(mailbox.ask("ack", [message["receipt"]]), 409)["detail"]
    assert mailbox.next() == []
