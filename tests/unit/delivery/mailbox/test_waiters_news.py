"""The statement for waiting clients reports a mailbox exactly if a fetch would return a message."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.queries import planned_rows
from delivery.mailbox import fetch
from delivery.models import Status
from subscriptions.models import Mode, SubscriptionStatus
from tests.support import factories

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def leased(ends_in: timedelta, **fields: Any) -> dict[str, Any]:
    ends_at = timezone.now() + ends_in
    lease = {
        "lease_token": uuid.uuid4(),
        "lease_expires_at": ends_at,
        "leased_at": ends_at - 2 * HOUR,
    }
    return {"status": Status.IN_FLIGHT, "receive_count": 1} | lease | fields


def started_at() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time()")
        return cursor.fetchone()[0]


CASES: dict[str, Any] = {
    "available": lambda: ({}, {}),
    "inactive": lambda: ({"status": SubscriptionStatus.INACTIVE}, {}),
    "settled": lambda: ({}, {"status": Status.DELIVERED}),
    "delayed": lambda: ({}, {"next_attempt_at": timezone.now() + HOUR}),
    "delay over": lambda: ({}, {"next_attempt_at": timezone.now() - HOUR}),
    "out": lambda: ({}, leased(HOUR)),
    "visibility over": lambda: ({}, leased(-HOUR)),
    "used up": lambda: ({"max_receives": 1}, leased(-HOUR)),
    "not used up": lambda: ({"max_receives": 2}, leased(-HOUR)),
    "resubmitted after it was used up": lambda: (
        {"max_receives": 1},
        leased(-HOUR, attempts_before=1),
    ),
    "past its time": lambda: ({}, {"expires_at": timezone.now() - HOUR}),
    "in time": lambda: ({}, {"expires_at": timezone.now() + HOUR}),
    "visibility over, past its time": lambda: ({}, leased(-HOUR, expires_at=timezone.now() - HOUR)),
    "VOLATILE": lambda: ({}, {"server_started_at": started_at()}),
    "VOLATILE of another run": lambda: ({}, {"server_started_at": started_at() - HOUR}),
    "VOLATILE, visibility over": lambda: ({}, leased(-HOUR, server_started_at=started_at())),
}
AVAILABLE = {
    "available",
    "delay over",
    "visibility over",
    "not used up",
    "resubmitted after it was used up",
    "in time",
    "VOLATILE",
}


def with_messages(*subscribers: int) -> list[int]:
    rows = planned_rows("mailboxes_with_messages", {"subscribers": list(subscribers)})
    return [subscriber for (subscriber,) in rows]


@pytest.mark.parametrize("case", CASES)
def test_a_mailbox_has_news_exactly_if_a_fetch_would_find_a_message(case: str) -> None:
    of_subscription, of_delivery = CASES[case]()
    wanted = factories.subscription(mode=Mode.PULL, **of_subscription)
    factories.delivery(subscription=wanted, **of_delivery)
    subscriber = wanted.subscriber_id
    assert with_messages(subscriber) == ([subscriber] if case in AVAILABLE else [])
    assert bool(fetch.fetch_messages(subscriber, most=1, visibility=30)) == (case in AVAILABLE)


def test_each_mailbox_is_named_once_and_no_other() -> None:
    reader, other = factories.subscriber(), factories.subscriber()
    for subscriber in (reader, reader, other):
        for _ in range(2):
            factories.delivery(
                subscription=factories.subscription(mode=Mode.PULL, subscriber=subscriber)
            )
    idle = factories.subscription(mode=Mode.PULL).subscriber
    factories.delivery(subscription=factories.subscription())
    assert with_messages(reader.pk, idle.pk) == [reader.pk]
