"""Restores messages found only in the archive to PostgreSQL, for a replay to deliver.

Their archived deliveries and attempts are not restored: the new delivery is the only delivery in
PostgreSQL. The message itself is not archived again, because it was published before the watermark;
retention removes it like any other, once the delivery is old enough.
"""

from collections.abc import Sequence
from typing import Any

from delivery.database.queries import first_row
from delivery.replays import archive_lookup

# Only originals are restored (see `delivery.history.steps.replay`), so without `edited_from`.
_COLUMNS = (
    *(
        "id",
        "event_type",
        "publisher",
        "headers",
        "content_type",
        "body",
        "destination",
        "published_at",
    ),
    *("owed", "transaction_id", "seen_before"),
)


class NotRestoredError(Exception):
    """The archive could not be read; the message gives the reason and where to look."""


def restore_messages(ids: Sequence[int]) -> int:
    """Restore those of these messages which are in the archive; return their number.

    A message whose event type no longer exists is skipped. Raises NotRestoredError. Call it in a
    transaction.
    """
    # Imported here because it imports the Parquet reader.
    from delivery.history.archive.small_files import ArchiveError

    try:
        return sum(_put_back(rows) for rows in archive_lookup.open_lookup().messages(ids))
    except ArchiveError as error:
        raise NotRestoredError(str(error)) from error


def _put_back(rows: Sequence[dict[str, Any]]) -> int:
    columns = {name: [row[name] for row in rows] for name in _COLUMNS}
    row = first_row("restore_messages", columns)
    assert row is not None
    count: int = row[0]
    return count
