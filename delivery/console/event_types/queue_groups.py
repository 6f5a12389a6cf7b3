"""The groups of QUEUE event types: all of a type, and all STOPPED groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Count, Min, Q

from delivery.database.queries import named_rows
from delivery.models.message import public_id
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded
from delivery.standing.reading import standing_of_groups
from delivery.standing.vocabulary import Standing
from subscriptions.models import EventType, Kind, Subscription, SubscriptionStatus

SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DownEndpoint:
    """An endpoint of a group, with why it is STOPPED or DOWN."""

    subscription_id: int
    subscription: str
    endpoint: str
    reason: str
    next_try_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DownGroup:
    """A STOPPED group, with the oldest waiting message."""

    event_type_id: int
    event: str
    condition: str
    message_id: int
    message: str
    oldest_at: datetime
    waiting: Bounded
    endpoints: tuple[DownEndpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGroup:
    """The subscriptions in a group."""

    condition: str
    standing: Standing
    active: int
    inactive: int


def groups_of_event_type(event_type: EventType) -> list[QueueGroup]:
    """Return the first groups of a QUEUE event type, oldest first.

    The list has `SHOWN` + 1 subscriptions if there are more.
    """
    if event_type.kind != Kind.QUEUE:
        return []
    is_active = Q(status=SubscriptionStatus.ACTIVE)
    rows = list(
        Subscription.objects.filter(event_type=event_type)
        .values("header_filter_string", "filter_identity")
        .annotate(all=Count("pk"), active=Count("pk", filter=is_active), oldest=Min("pk"))
        .order_by("oldest")[: SHOWN + 1]
    )
    standings = standing_of_groups(event_type.pk)
    return [
        QueueGroup(
            standing=standings.get(
                (row["header_filter_string"], row["filter_identity"]), Standing()
            ),
            condition=" and ".join(_conditions(row)),
            active=row["active"],
            inactive=row["all"] - row["active"],
        )
        for row in rows
    ]


def group_size(subscription: Subscription) -> int | None:
    """Return the number of subscriptions in the group, itself included; None outside of groups."""
    if (
        subscription.event_type.kind != Kind.QUEUE
        or subscription.status == SubscriptionStatus.SHADOW
    ):
        return None
    return (
        Subscription.objects.exclude(status=SubscriptionStatus.SHADOW)
        .filter(
            event_type=subscription.event_type,
            header_filter_string=subscription.header_filter_string,
            filter_identity=subscription.filter_identity,
        )
        .count()
    )


def groups_down(*, limit: int) -> list[DownGroup]:
    """Return the groups down, longest wait first."""
    groups = named_rows("queue_groups_down", {"limit": WAITING_LIMIT, "rows": limit})
    grouped = groupby(
        groups,
        lambda row: (row["event_type_id"], row["header_filter_string"], row["filter_identity"]),
    )
    return [_group(list(rows)) for _, rows in grouped]


def _group(rows: list[dict[str, Any]]) -> DownGroup:
    first = rows[0]
    return DownGroup(
        event_type_id=first["event_type_id"],
        event=first["event"],
        condition=" and ".join(_conditions(first)),
        message_id=first["message_id"],
        message=public_id(first["message_id"]),
        oldest_at=first["oldest_at"],
        waiting=Bounded(first["waiting"], WAITING_LIMIT),
        endpoints=tuple(
            DownEndpoint(**{name: row[name] for name in DownEndpoint.__slots__}) for row in rows
        ),
    )


def _conditions(row: dict[str, Any]) -> Iterator[str]:
    if row["header_filter_string"]:
        yield f"FILTER_STRING = {row['header_filter_string']}"
    if row["filter_identity"]:
        yield row["filter_identity"]
