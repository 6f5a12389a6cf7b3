"""Whether the database has room for a lock a lane: a full lock table refuses publishers, too."""

import logging
import math
from collections.abc import Mapping

from delivery.senders.read import Reader

log = logging.getLogger(__name__)

# What lanes may take of the lock table; the rest is for the transactions of everybody.
SHARE = 0.75


async def warn_of_little_room(reader: Reader) -> None:
    """Write to the log if so many lanes may be held at once that publishing could fail; see `lock_room.sql`."""
    (row,) = await reader.fetch("lock_room")
    wanted = enough(row)
    if row["per_connection"] < wanted:
        log.warning(
            "too few locks for so many lanes: raise PostgreSQL's max_locks_per_transaction",
            extra={"lanes": row["lanes"], "now": row["per_connection"], "at_least": wanted},
        )


def enough(row: Mapping[str, int]) -> int:
    """Return the max_locks_per_transaction with which all lanes have room."""
    return math.ceil(row["lanes"] / SHARE / row["connections"])
