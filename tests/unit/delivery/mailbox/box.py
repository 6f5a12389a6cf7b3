"""A mailbox and its subscriber's client, for tests of mailboxes.

Time is moved in the rows: a lease that would end in half a minute ended a moment ago.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.utils import timezone

from delivery.models import Attempt, Delivery, Status
from subscriptions.models import Mode, Scope, Subscriber, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller, Json, caller

ENDED = -timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class FilledMailbox:
    subscriber: Subscriber
    subscription: Subscription
    client: Caller

    def put(self, count: int = 1, **fields: Any) -> list[Delivery]:
        """Put messages in, the oldest first."""
        fields.setdefault("subscription", self.subscription)
        return [factories.delivery(**fields) for _ in range(count)]

    def ask(self, verb: str, receipts: list[str] | None = None, **query: Any) -> ApiAnswer:
        address = f"mailboxes/{self.subscriber.name}/{verb}?{urlencode(query)}"
        return self.client.post(address, None if receipts is None else {"receipts": receipts})

    def next(self, count: int = 1, **query: Any) -> list[Json]:
        """Fetch up to so many messages."""
        answer = self.ask("next", max=count, **query)
        if answer.status == 204:
            return []
        assert answer.status == 200, answer
        messages: list[Json] = answer.body["messages"]
        return messages

    def one(self, **query: Any) -> Json:
        (message,) = self.next(**query)
        return message

    def say(self, verb: str, message: Json, **query: Any) -> bool:
        """Report on a fetched message, and return whether the report was accepted."""
        answer = self.ask(verb, [message["receipt"]], **query)
        assert answer.status in {200, 409}, answer
        (result,) = answer.body["results"]
        assert result["receipt"] == message["receipt"]
        assert (result["error"] is None) == result["ok"] == (answer.status == 200)
        return bool(result["ok"])

    def status(self) -> Json:
        answer = self.client.get(f"mailboxes/{self.subscriber.name}/status")
        assert answer.status == 200, answer
        body: Json = answer.body
        return body


def box(subscriber: Subscriber | None = None, **fields: Any) -> FilledMailbox:
    """Create a mailbox with one subscription, and a client with its key."""
    owner = subscriber or factories.subscriber()
    subscription = factories.subscription(subscriber=owner, mode=Mode.PULL, **fields)
    return FilledMailbox(owner, subscription, caller(Scope.FETCH, subscriber=owner))


def ids(messages: list[Json]) -> list[str]:
    return [message["id"] for message in messages]


def public_ids(deliveries: list[Delivery]) -> list[str]:
    return [delivery.message.public_id for delivery in deliveries]


def now_of(delivery: Delivery) -> Delivery:
    return Delivery.objects.get(pk=delivery.pk)


def status_of(delivery: Delivery) -> Status:
    return Status(now_of(delivery).status)


def outcomes(delivery: Delivery) -> list[tuple[int, str]]:
    return list(
        Attempt.objects.filter(delivery=delivery)
        .order_by("number")
        .values_list("number", "outcome")
    )


def move(*deliveries: Delivery, **moments: timedelta) -> None:
    """Set moments of the rows, each relative to now."""
    now = timezone.now()
    rows = Delivery.objects.filter(pk__in=[delivery.pk for delivery in deliveries])
    rows.update(**{name: now + distance for name, distance in moments.items()})


def end_visibility(*deliveries: Delivery) -> None:
    move(*deliveries, lease_expires_at=ENDED)


def server_start() -> datetime:
    """Return when the database server started: VOLATILE messages belong to one start."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time()")
        row = cursor.fetchone()
    assert row is not None
    started: datetime = row[0]
    return started
