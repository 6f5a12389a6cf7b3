"""Restoring: messages that are in the archive alone are put back into PostgreSQL as they were, for a replay to deliver them.

Deliveries and attempts that were archived with them are not: the new delivery is all that is there of it. The message itself is not
archived again, for it was published before the watermark; retention removes it like any other, when its delivery is old enough.
"""

from collections.abc import Sequence
from typing import Any

from delivery.database.queries import first_row
from delivery.replays import archive_lookup

# Restored are originals only (see `delivery.history.steps.replay`): nothing of `edited_from`.
_COLUMNS = (
    *("id", "event_type", "publisher", "headers", "content_type", "body", "destination", "published_at"),
    *("owed", "transaction_id", "seen_before"),
)


class NotRestoredError(Exception):
    """The archive could not be read; the message says why, and where to look."""


def restore(ids: Sequence[int]) -> int:
    """Put these messages back, those that the archive has; return how many are. Call it in a transaction.

    One whose event type is gone cannot be. Raises NotRestoredError.
    """
    # Here, for it brings what reads Parquet.
    from delivery.history.archive.archive import ArchiveError

    try:
        return sum(_put_back(rows) for rows in archive_lookup.lookup().messages(ids))
    except ArchiveError as error:
        raise NotRestoredError(str(error)) from error


def _put_back(rows: Sequence[dict[str, Any]]) -> int:
    columns = {name: [row[name] for row in rows] for name in _COLUMNS}
    row = first_row("restore_messages", columns)
    assert row is not None
    count: int = row[0]
    return count
