"""How subscriptions, subscribers, mailboxes, groups and lanes stand, for the rows of a page."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from delivery.database.queries import (
    array,
    named_row,
    named_rows,
    planned_named_rows,
    planned_rows,
    rows,
)
from delivery.models import Lane
from delivery.standing import waiting_counts
from delivery.standing.vocabulary import (
    BY_A_PERSON,
    IN_TROUBLE,
    NONE_WAITING,
    Cause,
    Holder,
    Standing,
    State,
    group_of,
    waiting_parts,
    worst_of,
)
from delivery.standing.waiting_counts import Thing
from subscriptions.models import Mode, Subscriber, SubscriberStatus, Subscription

# Settled deliveries of a subscription that are searched for a DELIVERED.
_SEARCHED = 100


def standing_of_subscriptions(ids: Collection[int]) -> dict[int, Standing]:
    """Return how each of these subscriptions stands; those deleted meanwhile are QUIET."""
    found = {id: Standing() for id in ids}
    found |= {row["subscription_id"]: _standing(row) for row in _rows(subscriptions=ids)}
    return _with_waiting(found, {id: [part] for id, part in found.items()})


def standing_of_subscribers(
    ids: Collection[int], *, is_counted: bool = True
) -> dict[int, Standing]:
    """Return how each of these subscribers stands, by all its subscriptions.

    Those deleted meanwhile are QUIET. `waiting` is 0 unless `is_counted`.
    """
    found = _by_owner(_rows(subscribers=ids), is_counted=is_counted)
    empty = set(ids) - found.keys()
    if empty:
        statuses = dict(Subscriber.objects.filter(pk__in=empty).values_list("pk", "status"))
        found |= {id: _of_none(statuses.get(id, SubscriberStatus.ACTIVE)) for id in empty}
    return found


def standing_of_mailboxes(subscriber_ids: Collection[int]) -> dict[int, Standing]:
    """Return how each mailbox stands; a subscriber without PULL subscriptions has none."""
    return _by_owner(_rows(subscribers=subscriber_ids, mode=Mode.PULL))


def subscriptions_in_trouble() -> dict[int, State]:
    """Return the subscriptions that are STOPPED or DOWN, by the few rows of what stops them."""
    return {id: State(state) for id, state in rows("subscriptions_in_trouble", {})}


def standing_of_groups(event_type_id: int) -> dict[tuple[str, str], Standing]:
    """Return how the groups of a QUEUE event type stand, by filter string and filter's identity."""
    ids = Subscription.objects.filter(event_type=event_type_id).values_list("pk", flat=True)
    groups: dict[tuple[str, str], list[Standing]] = defaultdict(list)
    for row in _rows(subscriptions=list(ids)):
        groups[row["header_filter_string"], row["filter_identity"]].append(_standing(row))
    # The oldest sendable endpoint has a delivery of every message that waits for the group.
    return _with_waiting(
        {key: group_of(endpoints) for key, endpoints in groups.items()},
        {key: _first(waiting_parts(endpoints)) for key, endpoints in groups.items()},
    )


def standing_of_lanes(lanes: Collection[Lane], *, is_counted: bool = True) -> dict[int, Standing]:
    """Return how each lane stands: as its subscriber does; a shared lane by what waits in it.

    `waiting` is 0 unless `is_counted`.
    """
    owners = {lane.subscriber_id for lane in lanes if lane.subscriber_id is not None}
    of_owner = standing_of_subscribers(owners, is_counted=is_counted)
    shared = [lane.pk for lane in lanes if lane.subscriber_id is None]
    of_shared = _of_shared_lanes() if shared else {}
    waiting = waiting_counts.waiting_of_lanes(shared) if is_counted else {}
    return {
        lane.pk: (
            replace(of_shared.get(lane.pk, Standing()), waiting=waiting.get(lane.pk, NONE_WAITING))
            if lane.subscriber_id is None
            else of_owner.get(lane.subscriber_id, Standing())
        )
        for lane in lanes
    }


def last_delivered(standing: Standing, *, subscriptions: Collection[int]) -> datetime | None:
    """Return when the newest message of these subscriptions was delivered, if they are QUIET.

    Searches the newest settled deliveries of each.
    """
    if standing.state != State.QUIET:
        return None
    wanted = {"subscriptions": list(subscriptions), "searched": _SEARCHED}
    at: datetime | None = named_row("last_delivered", wanted)["at"]
    return at


def stopped_subscribers() -> dict[int, bool]:
    """Return the STOPPED subscribers, longest first: True for those stopped only by URLs."""
    return dict(planned_rows("stopped_subscribers", {}))


def stopped_counts() -> dict[Cause, int]:
    """Count the stopped lanes, BLOCKED or SUSPENDED, and the DOWN endpoints of lanes that go on."""
    return {Cause(row["cause"]): row["count"] for row in named_rows("stopped_counts", {})}


def lanes_in_state(state: State) -> QuerySet[Lane]:
    """Return the lanes that stand so. Reads all subscriptions."""
    parted = {
        row["subscriber_id"]: worst_of(
            [Standing(state=State(name)) for name in row["states"]]
        ).state
        for row in named_rows("states_of_subscribers", {})
    }
    owners = Subscriber.objects.values_list("pk", "status")
    found = [pk for pk, status in owners if parted.get(pk, _of_none(status).state) == state]
    shared = Lane.objects.filter(subscriber=None)
    by_lane = _of_shared_lanes()
    found_shared = [lane.pk for lane in shared if by_lane.get(lane.pk, Standing()).state == state]
    return Lane.objects.filter(Q(subscriber__in=found) | Q(pk__in=found_shared))


def _of_shared_lanes() -> dict[int, Standing]:
    return {
        row["lane_id"]: Standing(
            state=State.SLOW if row["is_slow"] else State.MOVING, oldest_at=row["oldest_at"]
        )
        for row in named_rows("standing_of_shared_lanes", {})
    }


def _by_owner(rows: Collection[dict[str, Any]], *, is_counted: bool = True) -> dict[int, Standing]:
    parts: dict[int, list[Standing]] = defaultdict(list)
    for row in rows:
        parts[row["subscriber_id"]].append(_standing(row))
    found = {id: worst_of(own) for id, own in parts.items()}
    if not is_counted:
        return found
    return _with_waiting(found, {id: waiting_parts(own) for id, own in parts.items()})


def _with_waiting(
    standings: dict[Thing, Standing], parts: Mapping[Thing, Collection[Standing]]
) -> dict[Thing, Standing]:
    """Add the numbers of waiting deliveries; those of a thing are those of these parts."""
    subscriptions = {
        thing: [
            part.subscription_id
            for part in parts[thing]
            if part.subscription_id is not None and part.oldest_at is not None
        ]
        for thing in standings
    }
    counted = waiting_counts.waiting_of_subscriptions(subscriptions)
    return standings | {
        thing: replace(standings[thing], waiting=waiting) for thing, waiting in counted.items()
    }


def _first(parts: Collection[Standing]) -> list[Standing]:
    return sorted(parts, key=lambda part: part.subscription_id or 0)[:1]


def _rows(
    *,
    subscriptions: Collection[int] = (),
    subscribers: Collection[int] = (),
    mode: Mode | None = None,
) -> list[dict[str, Any]]:
    if not subscriptions and not subscribers:
        return []
    wanted = {"subscriptions": array(subscriptions), "subscribers": array(subscribers)}
    return planned_named_rows("standing_of_subscriptions", wanted | {"mode": mode})


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
