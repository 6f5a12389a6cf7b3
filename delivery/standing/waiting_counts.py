"""Numbers of waiting deliveries, for all rows of a list page at once."""

from collections.abc import Collection

from delivery.database.queries import named_rows
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded


def waiting_of_lanes(ids: Collection[int]) -> dict[int, Bounded]:
    return _counted("waiting_of_lanes", ids)


def waiting_of_subscriptions(ids: Collection[int]) -> dict[int, Bounded]:
    """Count PENDING deliveries, including held deliveries."""
    return _counted("waiting_of_subscriptions", ids)


def _counted(statement: str, ids: Collection[int]) -> dict[int, Bounded]:
    if not ids:
        return {}
    rows = named_rows(statement, {"ids": list(ids), "limit": WAITING_LIMIT})
    return {row["id"]: Bounded(row["waiting"], WAITING_LIMIT) for row in rows}
