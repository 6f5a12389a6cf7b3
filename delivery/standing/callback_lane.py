"""The callback lane's backlog: undelivered answers to callbacks."""

from dataclasses import dataclass
from datetime import datetime

from delivery.database.queries import named_row
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackLane:
    """`failed` were tried before; the first of these is due at `next_at`."""

    waiting: Bounded
    failed: Bounded
    next_at: datetime | None
    oldest_at: datetime | None


def read_callback_lane() -> CallbackLane:
    row = named_row("callback_lane", {"limit": WAITING_LIMIT})
    return CallbackLane(
        waiting=Bounded(row["waiting"], WAITING_LIMIT),
        failed=Bounded(row["failed"], WAITING_LIMIT),
        next_at=row["next_at"],
        oldest_at=row["oldest_at"],
    )
