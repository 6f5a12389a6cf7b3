"""Figures of mailboxes: available and leased messages, fetch and acknowledgement rates."""

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
    """The figures of a mailbox, or of a subscription in it.

    Each count stops slightly above the limit of the request. `available` counts the deliveries the
    next fetch may return (except those expiring at this moment), `delayed` those released with a
    delay, `in_flight` the leased ones, `held` those of subscriptions not ACTIVE, by themselves or
    as a whole, or being cancelled: nobody can fetch them. `oldest_at` is when the oldest
    unacknowledged message was published. The rates cover the last full minute, and always the whole
    mailbox.
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
        """Return the age of the oldest unacknowledged message; None if there is none."""
        if self.oldest_at is None:
            return None
        return round(max((now - self.oldest_at).total_seconds(), 0.0), 3)


def figures_of_subscription(subscription_id: int, *, now: datetime, limit: int) -> Figures | None:
    """Return the figures of a subscription; None if the mode is not PULL."""
    parameters = {"subscriptions": [subscription_id], "subscribers": [], "limit": limit}
    return next(iter(_figures(parameters, now=now).values()), None)


def figures_of_subscribers(
    subscriber_ids: Collection[int], *, now: datetime, limit: int
) -> dict[int, Figures]:
    """Return figures by subscriber. A subscriber without a PULL subscription has no mailbox."""
    return _figures(
        {"subscriptions": [], "subscribers": list(subscriber_ids), "limit": limit}, now=now
    )


def forget_rates() -> None:
    """Remove the rates needed by no figure any more."""
    queries.execute_statement("forget_rates", {})


def _figures(parameters: dict[str, Any], *, now: datetime) -> dict[int, Figures]:
    grouped: defaultdict[int, list[Sequence[Any]]] = defaultdict(list)
    for subscriber_id, *row in queries.planned_rows("mailboxes", parameters):
        grouped[subscriber_id].append(row)
    rates = _rates(grouped.keys(), now=now) if grouped else {}
    return {id: _summed(id, rows, rates.get(id, (0, 0))) for id, rows in grouped.items()}


def _rates(subscriber_ids: Collection[int], *, now: datetime) -> dict[int, _Rates]:
    """Return the numbers of received and acknowledged messages, by subscriber."""
    until = now - timedelta(seconds=now.timestamp() % BUCKET.total_seconds())
    counted = MailboxRate.objects.filter(
        subscriber__in=subscriber_ids, at__gte=until - RATE_WINDOW, at__lt=until
    )
    rows = (
        counted.values("subscriber")
        .annotate(got=Sum("received"), done=Sum("acknowledged"))
        .order_by()
    )
    return {row["subscriber"]: (row["got"], row["done"]) for row in rows}


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
