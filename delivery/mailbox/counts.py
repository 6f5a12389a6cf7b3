"""The figures of mailboxes: what is there, what is out, and how fast it is fetched and acknowledged."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from django.db.models import Sum

from delivery.database import queries
from delivery.models import MailboxRate

RATE_WINDOW = timedelta(minutes=1)
BUCKET = timedelta(seconds=10)

_Rates: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is in a mailbox, or of one subscription in it. Each count ends a little above the limit it was asked for with.

    `available` is what the next fetch may get (but for what is just expiring), `delayed` what was released with a delay, `in_flight` what
    is out, `held` what an INACTIVE subscription keeps from being fetched; `oldest_at` is when the oldest that is not
    acknowledged was published. The rates are of the last whole minute, and always of the whole mailbox.
    """

    subscriber_id: int
    available: int
    delayed: int
    in_flight: int
    held: int
    oldest_at: datetime | None
    received_per_minute: int
    acknowledged_per_minute: int

    def oldest_seconds(self, *, now: datetime) -> float | None:
        """How long ago the oldest that is not acknowledged was published; None when there is none."""
        if self.oldest_at is None:
            return None
        return round(max((now - self.oldest_at).total_seconds(), 0.0), 3)


def of_subscription(subscription_id: int, *, now: datetime, limit: int) -> Figures | None:
    """None: it is none of mode PULL."""
    asked = {"subscriptions": [subscription_id], "subscribers": [], "limit": limit}
    return next(iter(_figures(asked, now=now).values()), None)


def of_subscribers(subscriber_ids: Collection[int], *, now: datetime, limit: int) -> dict[int, Figures]:
    """By subscriber; who has no PULL subscription has no mailbox."""
    return _figures({"subscriptions": [], "subscribers": list(subscriber_ids), "limit": limit}, now=now)


def forget_rates() -> None:
    """Remove what a mailbox's figures do not need any more."""
    queries.execute("forget_rates", {})


def _figures(asked: dict[str, Any], *, now: datetime) -> dict[int, Figures]:
    grouped: defaultdict[int, list[Sequence[Any]]] = defaultdict(list)
    for subscriber_id, *row in queries.planned_rows("mailboxes", asked):
        grouped[subscriber_id].append(row)
    rates = _rates(grouped.keys(), now=now) if grouped else {}
    return {id: _summed(id, rows, rates.get(id, (0, 0))) for id, rows in grouped.items()}


def _rates(subscriber_ids: Collection[int], *, now: datetime) -> dict[int, _Rates]:
    """Received and acknowledged, by subscriber."""
    until = now - timedelta(seconds=now.timestamp() % BUCKET.total_seconds())
    counted = MailboxRate.objects.filter(
        subscriber__in=subscriber_ids, at__gte=until - RATE_WINDOW, at__lt=until
    )
    found = counted.values("subscriber").annotate(got=Sum("received"), done=Sum("acknowledged")).order_by()
    return {row["subscriber"]: (row["got"], row["done"]) for row in found}


def _summed(subscriber_id: int, rows: Sequence[Sequence[Any]], rates: _Rates) -> Figures:
    available, delayed, held, in_flight, oldest_at = zip(*rows, strict=True)
    received, acknowledged = rates
    return Figures(
        subscriber_id=subscriber_id,
        available=sum(available),
        delayed=sum(delayed),
        in_flight=sum(in_flight),
        held=sum(held),
        oldest_at=min(filter(None, oldest_at), default=None),
        received_per_minute=received,
        acknowledged_per_minute=acknowledged,
    )
