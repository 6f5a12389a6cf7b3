"""The figures of a mailbox: available and leased messages, age, rates."""

from datetime import datetime, timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from delivery.api import mailboxes
from delivery.mailbox import counts as mailbox_figures
from delivery.models import MailboxRate
from subscriptions.models import SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.mailbox.box import ENDED, FilledMailbox, end_visibility, move

LATER = timedelta(hours=1)


def counts(mailbox: FilledMailbox) -> tuple[int, int]:
    status = mailbox.status()
    return status["available"], status["in_flight"]


def test_a_fetched_message_counts_as_in_flight_and_not_as_available(mailbox: FilledMailbox) -> None:
    put = mailbox.put(5)
    assert counts(mailbox) == (5, 0)
    mailbox.next(2)
    assert counts(mailbox) == (3, 2)
    end_visibility(put[0])
    assert counts(mailbox) == (4, 1)
    mailbox.say("ack", mailbox.one())
    assert counts(mailbox) == (3, 1)


def test_a_delayed_message_is_not_available_before_its_time(mailbox: FilledMailbox) -> None:
    (delivery,) = mailbox.put()
    move(delivery, next_attempt_at=LATER)
    assert counts(mailbox) == (0, 0)
    move(delivery, next_attempt_at=ENDED)
    assert counts(mailbox) == (1, 0)


def test_held_messages_are_not_available_but_fetched_ones_count(mailbox: FilledMailbox) -> None:
    mailbox.put(3)
    mailbox.one()
    mailbox.subscription.status = SubscriptionStatus.INACTIVE
    mailbox.subscription.save()
    assert counts(mailbox) == (0, 1)


def test_the_oldest_is_the_oldest_that_is_not_acknowledged(mailbox: FilledMailbox) -> None:
    now = timezone.now()
    for minutes in (30, 20, 10):
        mailbox.put(message=factories.message(published_at=now - timedelta(minutes=minutes)))
    ages = []
    for _ in range(3):
        message = mailbox.one()
        ages.append(round(mailbox.status()["oldest_seconds"] / 60))
        mailbox.say("ack", message)
    assert ages == [30, 20, 10]
    assert mailbox.status()["oldest_seconds"] is None


def test_the_rates_are_those_of_the_last_full_minute(mailbox: FilledMailbox) -> None:
    mailbox.put(5)
    receipts = [message["receipt"] for message in mailbox.next(5)]
    mailbox.ask("ack", receipts[:3])
    # Counted in one period of ten seconds, or in two if one ended meanwhile.
    at = sorted(MailboxRate.objects.values_list("at", flat=True))
    first, last = at[0], at[-1]
    assert rates_at(mailbox, first + timedelta(seconds=9)) == (0, 0)
    assert rates_at(mailbox, last + timedelta(seconds=10)) == (5, 3)
    assert rates_at(mailbox, first + timedelta(seconds=69)) == (5, 3)
    assert rates_at(mailbox, last + timedelta(seconds=70)) == (0, 0)


def test_a_status_request_contains_the_rates(mailbox: FilledMailbox) -> None:
    mailbox.put(5)
    mailbox.ask("ack", [message["receipt"] for message in mailbox.next(5)][:3])
    # Well within the last minute, for as long as this may take.
    MailboxRate.objects.update(at=F("at") - timedelta(seconds=30))
    status = mailbox.status()
    assert (status["received_per_minute"], status["acknowledged_per_minute"]) == (5, 3)


def test_one_subscription_can_be_counted_alone(mailbox: FilledMailbox) -> None:
    other = factories.subscription(subscriber=mailbox.subscriber, mode="PULL")
    mailbox.put(2)
    mailbox.put(3, subscription=other)
    figures = mailbox_figures.figures_of_subscription(other.pk, now=timezone.now(), limit=10)
    assert figures is not None
    assert figures.available == 3


def test_counting_stops_at_a_limit_and_says_so(
    mailbox: FilledMailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailboxes, "COUNT_LIMIT", 3)
    put = mailbox.put(6)
    assert (counts(mailbox), mailbox.status()["is_at_least"]) == ((3, 0), True)
    mailbox.next(6)
    end_visibility(put[0])
    assert (counts(mailbox), mailbox.status()["is_at_least"]) == ((1, 3), True)
    for delivery in put[1:3]:
        end_visibility(delivery)
    assert counts(mailbox) == (3, 3)
    assert "is_at_least" not in mailbox.status()


def rates_at(mailbox: FilledMailbox, now: datetime) -> tuple[int, int]:
    id = mailbox.subscriber.pk
    figures = mailbox_figures.figures_of_subscribers([id], now=now, limit=10)[id]
    return figures.received_per_minute, figures.acknowledged_per_minute
