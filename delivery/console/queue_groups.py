"""The groups of QUEUE event types that are down: no endpoint takes their messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from delivery.console.counting import WAITING_LIMIT, Bounded
from delivery.database import named_rows
from delivery.models.message import public_id

SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DownEndpoint:
    """An endpoint of a group, with what it last answered to the oldest message that it failed with."""

    subscription_id: int
    subscription: str
    endpoint: str
    reason: str
    next_attempt_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DownGroup:
    """A group every ACTIVE endpoint of which failed, with the oldest message that waits for one."""

    event_type_id: int
    event: str
    condition: str
    message_id: int
    message: str
    oldest_at: datetime
    waiting: Bounded
    endpoints: tuple[DownEndpoint, ...]


def down(*, limit: int) -> list[DownGroup]:
    """Return the groups whose messages have waited longest."""
    found = named_rows("queue_groups_down", {"limit": WAITING_LIMIT, "rows": limit})
    grouped = groupby(found, lambda row: (row["event_type_id"], row["header_filter_string"], row["filter"]))
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
        waiting=Bounded(max(row["waiting"] for row in rows), WAITING_LIMIT),
        endpoints=tuple(DownEndpoint(**{name: row[name] for name in DownEndpoint.__slots__}) for row in rows),
    )


def _conditions(row: dict[str, Any]) -> Iterator[str]:
    if row["header_filter_string"]:
        yield f"FILTER_STRING = {row['header_filter_string']}"
    if row["filter"]:
        yield row["filter"]
