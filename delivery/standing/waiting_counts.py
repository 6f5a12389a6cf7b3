"""Numbers of waiting deliveries, for all rows of a page at once."""

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

from delivery.database.queries import array, planned_named_rows
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded

Thing = TypeVar("Thing", bound=Hashable)


def waiting_of_lanes(ids: Collection[int]) -> dict[int, Bounded]:
    """Count the deliveries in each lane that are PENDING and of ACTIVE subscriptions."""
    if not ids:
        return {}
    rows = planned_named_rows("waiting_of_lanes", {"ids": array(ids), "limit": WAITING_LIMIT})
    return {row["id"]: Bounded(row["waiting"], WAITING_LIMIT) for row in rows}


def waiting_of_subscriptions(
    subscriptions: Mapping[Thing, Collection[int]],
) -> dict[Thing, Bounded]:
    """Count the open deliveries of each thing's subscriptions; a thing without any is left out."""
    if not subscriptions:
        return {}
    numbered = list(subscriptions)
    pairs = [(n, id) for n, thing in enumerate(numbered) for id in subscriptions[thing]]
    wanted = {
        "things": array(n for n, _ in pairs),
        "subscriptions": array(id for _, id in pairs),
        "limit": WAITING_LIMIT,
    }
    return {
        numbered[row["thing"]]: Bounded(row["waiting"], WAITING_LIMIT)
        for row in planned_named_rows("waiting_of_subscriptions", wanted)
    }
