"""Overdue deliveries are settled, reported once and explained, unless in flight or leased."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from delivery.mailbox import counts
from delivery.maintenance import expiry
from delivery.models import (
    Attempt,
    Delivery,
    FailureNotice,
    JournalEntry,
    JournalKind,
    Lane,
    LaneKind,
    MailboxRate,
    OutcomeClass,
    Status,
)
from subscriptions.models import Durability, EventType, Mode, Subscription, SubscriptionStatus
from tests.support import factories

pytestmark = pytest.mark.django_db

MINUTE = timedelta(seconds=60)


def settle() -> int:
    with transaction.atomic():
        return expiry.settle_overdue(limit=100)


def past(of: Subscription, *, lived: timedelta = MINUTE, **fields: Any) -> Delivery:
    """Create a delivery whose time ended a moment ago."""
    over_at = timezone.now() - timedelta(seconds=1)
    message = factories.message(event_type=of.event_type, published_at=over_at - lived)
    return factories.delivery(subscription=of, message=message, expires_at=over_at, **fields)


def fetched(of: Subscription, *, left: float = -1, **fields: Any) -> Delivery:
    """Create a fetched delivery, leased until so many seconds from now."""
    until = timezone.now() + timedelta(seconds=left)
    given = {"receive_count": 1, "lease_expires_at": until, "leased_at": until - MINUTE} | fields
    return factories.delivery(Status.IN_FLIGHT, subscription=of, **given)


def mailbox(**fields: Any) -> Subscription:
    return factories.subscription(mode=Mode.PULL, **fields)


def record_run(row: Delivery, *, attempts: int | None = None) -> None:
    run = {"run_ids": [row.pk], "run_attempts": [row.attempts if attempts is None else attempts]}
    Lane.objects.filter(deliveries=row).update(**run)


def status(row: Delivery) -> str:
    row.refresh_from_db()
    return row.status


def test_an_overdue_delivery_expires_with_its_reason() -> None:
    row = past(factories.subscription())
    assert settle() == 1
    assert status(row) == Status.EXPIRED
    assert row.reason == "not delivered within its time to live of 60 s"
    assert row.settled_at is not None
    assert settle() == 0


def test_deliveries_with_remaining_or_unlimited_time_stay() -> None:
    of = factories.subscription()
    later = factories.delivery(subscription=of, expires_at=timezone.now() + MINUTE)
    ever = factories.delivery(subscription=of)
    assert settle() == 0
    assert {status(later), status(ever)} == {Status.PENDING}


def test_held_and_postponed_deliveries_expire_too() -> None:
    of = factories.subscription(status=SubscriptionStatus.INACTIVE)
    held = past(of)
    skipped = past(of, skipped=True, attempts=3, next_attempt_at=timezone.now() + MINUTE)
    assert settle() == 2
    assert (status(held), status(skipped)) == (Status.EXPIRED, Status.EXPIRED)
    assert (skipped.skipped, skipped.next_attempt_at, skipped.attempts) == (False, None, 3)


def test_a_delivery_named_by_a_run_stays_until_its_outcome_is_recorded() -> None:
    row = past(factories.subscription())
    record_run(row)
    assert settle() == 0
    # Its attempt failed: the run names an earlier state of it.
    Delivery.objects.filter(pk=row.pk).update(attempts=1)
    assert settle() == 1
    assert status(row) == Status.EXPIRED


def test_unread_and_unacknowledged_messages_expire_with_different_reasons() -> None:
    of = mailbox()
    unread = past(of, lived=timedelta(days=4))
    given_back = past(of, lived=timedelta(days=4), receive_count=2, attempts=2)
    out = fetched(of, expires_at=timezone.now() - MINUTE, receive_count=3)
    assert settle() == 3
    assert status(unread) == status(given_back) == status(out) == Status.EXPIRED
    assert unread.reason == "unread for 4 days"
    assert given_back.reason == "not acknowledged within 4 days"
    attempt = Attempt.objects.get()
    assert (attempt.delivery_id, attempt.number) == (out.pk, 3)
    assert attempt.outcome == OutcomeClass.UNACKNOWLEDGED
    assert (out.attempts, out.lease_token) == (3, None)


def test_a_valid_lease_keeps_an_overdue_delivery() -> None:
    row = fetched(mailbox(), left=30, expires_at=timezone.now() - MINUTE)
    assert settle() == 0
    assert status(row) == Status.IN_FLIGHT


def test_a_message_at_max_receives_fails_when_its_visibility_ends() -> None:
    of = mailbox(max_receives=2)
    once = fetched(of)
    twice = fetched(of, receive_count=2)
    out = fetched(of, receive_count=2, left=30)
    anew = fetched(of, receive_count=3, attempts_before=2)
    assert settle() == 1
    assert [status(row) for row in (once, twice, out, anew)] == [
        "IN_FLIGHT",
        "FAILED",
        "IN_FLIGHT",
        "IN_FLIGHT",
    ]
    assert twice.reason == "not acknowledged after 2 receives, as many as max_receives allows"
    assert Attempt.objects.get().outcome == OutcomeClass.UNACKNOWLEDGED
    assert JournalEntry.objects.get().kind == JournalKind.FAILED


class TestVolatile:
    @pytest.fixture
    def started_at(self) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_postmaster_start_time()")
            (moment,) = cursor.fetchone() or (None,)
        return moment

    def test_volatile_deliveries_of_an_earlier_postgresql_start_are_dropped(
        self, started_at: Any
    ) -> None:
        of = factories.subscription()
        now = factories.delivery(subscription=of, server_started_at=started_at)
        before = factories.delivery(subscription=of, server_started_at=started_at - MINUTE)
        under_way = factories.delivery(
            subscription=factories.subscription(), server_started_at=started_at - MINUTE
        )
        record_run(under_way)
        assert settle() == 1
        assert [status(row) for row in (now, before, under_way)] == [
            "PENDING",
            "EXPIRED",
            "PENDING",
        ]
        assert before.reason.startswith(
            "dropped: it is VOLATILE, and the database server restarted at "
            f"{started_at:%Y-%m-%d %H:%M:%S} UTC"
        )

    def test_a_volatile_message_in_a_mailbox_is_handed_out_once(self, started_at: Any) -> None:
        event_type = factories.event_type(durability=Durability.VOLATILE)
        row = fetched(mailbox(event_type=event_type), server_started_at=started_at)
        assert settle() == 1
        assert status(row) == Status.FAILED
        assert "handed out once" in row.reason


class TestReportingExpiry:
    def test_each_leaves_a_notice_with_its_last_attempt(self) -> None:
        of = factories.subscription()
        never, tried = past(of), past(of, attempts=2)
        settle()
        assert set(FailureNotice.objects.values_list("delivery_id", "number")) == {
            (never.pk, 0),
            (tried.pk, 2),
        }

    def test_an_expired_failure_message_is_not_reported(self) -> None:
        of = factories.subscription(event_type=EventType.objects.get(name="Inturn.Delivery.Failed"))
        row = past(of)
        settle()
        assert status(row) == Status.EXPIRED
        assert not FailureNotice.objects.exists()

    def test_the_journal_has_one_entry_for_each_subscription_and_cause(self) -> None:
        first, other = factories.subscription("orders"), factories.subscription("bills")
        for _ in range(3):
            past(first)
        past(first, lived=2 * MINUTE)
        past(other)
        settle()
        entries = set(JournalEntry.objects.values_list("kind", "subscription_id", "text"))
        lived = "expired: not delivered within its time to live of"
        assert entries == {
            (
                JournalKind.EXPIRED,
                first.pk,
                f"4 deliveries of {first.subscriber}/orders {lived} 60 s to 120 s.",
            ),
            (
                JournalKind.EXPIRED,
                other.pk,
                f"1 delivery of {other.subscriber}/bills {lived} 60 s.",
            ),
        }

    def test_resubmitted_mailbox_deliveries_expire_one_by_one_with_one_journal_entry(self) -> None:
        of = mailbox()
        for hours in range(5):
            past(of, lived=timedelta(days=5, hours=hours, seconds=17))
        settle()
        text = JournalEntry.objects.get().text
        assert text.endswith("/" + of.name + " expired: unread for about 5 days.")


class TestExpiringGroups:
    @pytest.fixture
    def group(self) -> list[Delivery]:
        event_type = factories.event_type(kind="QUEUE")
        message = factories.message(event_type=event_type, published_at=timezone.now() - MINUTE)
        lane = Lane.objects.get(kind=LaneKind.QUEUE, number=0)
        members = [factories.subscription(event_type=event_type) for _ in range(2)]
        return [
            factories.delivery(
                subscription=of,
                message=message,
                lane=lane,
                queue_group=0,
                expires_at=message.published_at + timedelta(seconds=30),
            )
            for of in members
        ]

    def test_a_group_expires_as_a_whole(self, group: list[Delivery]) -> None:
        assert settle() == 2
        assert {status(row) for row in group} == {Status.EXPIRED}
        assert group[0].reason == "not delivered within its time to live of 30 s"

    def test_a_group_with_an_attempt_in_flight_does_not_expire(self, group: list[Delivery]) -> None:
        record_run(group[1])
        assert settle() == 0
        assert {status(row) for row in group} == {Status.PENDING}

    def test_a_refused_member_keeps_its_status(self, group: list[Delivery]) -> None:
        group[0].delete()
        refused = factories.delivery(
            Status.REJECTED,
            subscription=group[1].subscription,
            message=group[1].message,
            queue_group=0,
        )
        assert settle() == 1
        assert (status(refused), status(group[1])) == (Status.REJECTED, Status.EXPIRED)


def test_only_the_limit_is_settled_at_a_time_and_the_oldest_first() -> None:
    of = factories.subscription()
    rows = [past(of, lived=MINUTE) for _ in range(3)]
    Delivery.objects.filter(pk=rows[2].pk).update(expires_at=timezone.now() - 9 * MINUTE)
    with transaction.atomic():
        assert expiry.settle_overdue(limit=1) == 1
    assert [status(row) for row in rows] == ["PENDING", "PENDING", "EXPIRED"]


def test_counts_of_mailboxes_are_forgotten_after_an_hour() -> None:
    subscriber = factories.subscriber()
    for age in (50, 70):
        MailboxRate.objects.create(subscriber=subscriber, at=timezone.now() - age * MINUTE, slot=0)
    counts.forget_rates()
    assert MailboxRate.objects.count() == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 s"),
        (60, "60 s"),
        (3600, "1 hour"),
        (7200.0004, "2 hours"),
        (86_400, "1 day"),
        (345_600, "4 days"),
        (5_000, "5000 s"),
        (90_061, "about 25 hours"),
        (436_123, "about 5 days"),
    ],
)
def test_a_time_is_shown_in_its_largest_whole_unit(seconds: float, words: str) -> None:
    assert expiry.duration_text(seconds) == words
