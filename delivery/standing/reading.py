"""How subscriptions, subscribers, mailboxes and queue groups stand: read for the rows of a page."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from delivery.database.queries import named_rows
from delivery.standing.vocabulary import (
    BY_A_PERSON,
    IN_TROUBLE,
    Cause,
    Holder,
    Standing,
    State,
    group_of,
    worst_of,
)
from subscriptions.models import Mode, Subscriber, SubscriberStatus, Subscription


def standing_of_subscriptions(ids: Collection[int]) -> dict[int, Standing]:
    """Return how each of these subscriptions stands; those that are gone are left out."""
    return {row["subscription_id"]: _standing(row) for row in _rows(ids)}


def standing_of_subscribers(ids: Collection[int]) -> dict[int, Standing]:
    """Return how each of these subscribers stands, by all subscriptions."""
    statuses = Subscriber.objects.filter(pk__in=ids).values_list("pk", "status")
    parts = _parts(Subscription.objects.filter(subscriber__in=ids).values_list("pk", flat=True))
    return {id: worst_of(parts[id]) if id in parts else _of_none(status) for id, status in statuses}


def standing_of_mailboxes(subscriber_ids: Collection[int]) -> dict[int, Standing]:
    """Return how each mailbox stands; a subscriber without PULL subscriptions has none."""
    pulling = Subscription.objects.filter(subscriber__in=subscriber_ids, mode=Mode.PULL)
    parts = _parts(pulling.values_list("pk", flat=True))
    return {id: worst_of(found) for id, found in parts.items()}


def standing_of_groups(event_type_id: int) -> dict[tuple[str, str], Standing]:
    """Return how the groups of a QUEUE event type stand, by filter string and filter's identity."""
    ids = Subscription.objects.filter(event_type=event_type_id).values_list("pk", flat=True)
    groups: dict[tuple[str, str], list[Standing]] = defaultdict(list)
    for row in _rows(list(ids)):
        groups[row["header_filter_string"], row["filter_identity"]].append(_standing(row))
    return {key: group_of(endpoints) for key, endpoints in groups.items()}


def _parts(ids: Iterable[int]) -> dict[int, list[Standing]]:
    parts: dict[int, list[Standing]] = defaultdict(list)
    for row in _rows(list(ids)):
        parts[row["subscriber_id"]].append(_standing(row))
    return parts


def _rows(ids: Collection[int]) -> list[dict[str, Any]]:
    return named_rows("standing_of_subscriptions", {"ids": list(ids)}) if ids else []


def _standing(row: dict[str, Any]) -> Standing:
    state = State(row["state"])
    return Standing(
        state=state,
        cause=Cause(row["cause"]) if row["cause"] else None,
        holder=Holder(row["holder"]) if row["holder"] else None,
        reason=row["reason"],
        since=row["since"] or row["decided_at"],
        next_try_at=row["next_try_at"] or row["held_until"],
        subscription_id=row["subscription_id"],
        delivery_id=row["delivery_id"],
        oldest_at=row["oldest_at"],
        parts=int(state not in BY_A_PERSON),
        down=int(state in IN_TROUBLE),
    )


def _of_none(status: str) -> Standing:
    """Return the standing of a subscriber without subscriptions."""
    if status == SubscriberStatus.ACTIVE:
        return Standing()
    return Standing(state=State(status), cause=Cause(status), holder=Holder.SUBSCRIBER)
