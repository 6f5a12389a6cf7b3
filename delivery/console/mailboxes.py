"""The mailboxes of subscribers: what is there, what is out, and how fast it is fetched and acknowledged."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum

from delivery.console import statements
from delivery.console.counting import WAITING_LIMIT, Bounded
from delivery.models import MailboxRate

SHOWN = 20
RATE_WINDOW = timedelta(minutes=1)
_BUCKET_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """What is in a mailbox, or of one subscription in it.

    `available` is what the next fetch may get, `delayed` what was released with a delay, `in_flight` what is out, `held` what an
    INACTIVE subscription keeps from being fetched. The rates are always of the whole mailbox.
    """

    subscriber_id: int
    available: Bounded
    delayed: Bounded
    in_flight: Bounded
    held: Bounded
    oldest_at: datetime | None
    received_per_minute: int
    acknowledged_per_minute: int

    @property
    def holds(self) -> Bounded:
        """All that is not acknowledged."""
        return _sum(count.found for count in (self.available, self.delayed, self.in_flight, self.held))


def of_subscription(subscription_id: int, *, now: datetime) -> Mailbox | None:
    """None: it is none of mode PULL."""
    return next(iter(_mailboxes(_rows(subscriptions=[subscription_id]), now=now).values()), None)


def of_subscribers(subscriber_ids: Collection[int], *, now: datetime) -> dict[int, Mailbox]:
    """Who has no PULL subscription has no mailbox."""
    return _mailboxes(_rows(subscribers=subscriber_ids), now=now)


def fullest(*, limit: int, now: datetime) -> list[tuple[str, Mailbox]]:
    """Return whose mailboxes hold something, those with the oldest message first, with the subscriber's name."""
    found = statements.rows("fullest_mailboxes", {"rows": limit})
    if not found:
        return []
    shown = of_subscribers([row["subscriber_id"] for row in found], now=now)
    return [
        (row["subscriber"], shown[row["subscriber_id"]]) for row in found if row["subscriber_id"] in shown
    ]


def _mailboxes(rows: list[dict[str, Any]], *, now: datetime) -> dict[int, Mailbox]:
    """By subscriber."""
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(row["subscriber_id"], []).append(row)
    rates = _rates(grouped, now=now) if grouped else {}
    return {id: _mailbox(id, rows, rates.get(id, (0, 0))) for id, rows in grouped.items()}


def _rows(*, subscriptions: Collection[int] = (), subscribers: Collection[int] = ()) -> list[dict[str, Any]]:
    asked = {"subscriptions": list(subscriptions), "subscribers": list(subscribers)}
    return statements.rows("mailboxes", {**asked, "limit": WAITING_LIMIT})


def _rates(subscriber_ids: Collection[int], *, now: datetime) -> dict[int, tuple[int, int]]:
    """Received and acknowledged within the last minute that is complete."""
    until = now.replace(second=now.second - now.second % _BUCKET_SECONDS, microsecond=0)
    counted = MailboxRate.objects.filter(
        subscriber__in=subscriber_ids, at__gte=until - RATE_WINDOW, at__lt=until
    )
    found = counted.values("subscriber").annotate(got=Sum("received"), done=Sum("acknowledged")).order_by()
    return {row["subscriber"]: (row["got"], row["done"]) for row in found}


def _mailbox(subscriber_id: int, rows: list[dict[str, Any]], rates: tuple[int, int]) -> Mailbox:
    received, acknowledged = rates
    return Mailbox(
        subscriber_id=subscriber_id,
        available=_sum(row["available"] for row in rows),
        delayed=_sum(row["delayed"] for row in rows),
        in_flight=_sum(row["in_flight"] for row in rows),
        held=_sum(row["held"] for row in rows),
        oldest_at=min((row["oldest_at"] for row in rows if row["oldest_at"]), default=None),
        received_per_minute=received,
        acknowledged_per_minute=acknowledged,
    )


def _sum(counts: Iterable[int]) -> Bounded:
    return Bounded(sum(counts), WAITING_LIMIT)
