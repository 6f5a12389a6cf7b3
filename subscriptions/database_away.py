"""Recognition of errors which mean the database is away for now: unreachable or read-only.

It is read-only while a standby answers instead (after a fail-over, until it is promoted), or while
an administrator has made it so. A session may stay read-only after new sessions can write again:
code with this error opens a new connection.
"""

import time

from django.db import InterfaceError, OperationalError, connection
from psycopg.errors import LockNotAvailable, ReadOnlySqlTransaction


def is_read_only(error: BaseException | None) -> bool:
    """Return whether a change failed because the database is read-only.

    Takes Django's or psycopg's error.
    """
    return isinstance(error, ReadOnlySqlTransaction) or (
        error is not None and isinstance(error.__cause__, ReadOnlySqlTransaction)
    )


def is_away(error: BaseException | None) -> bool:
    """Return whether the same statement may well succeed later. Deadlocks are included."""
    return isinstance(error, OperationalError | InterfaceError) or is_read_only(error)


def is_locked(error: BaseException | None) -> bool:
    """Return whether a statement waited too long for a row locked by another session."""
    return error is not None and isinstance(error.__cause__, LockNotAvailable)


def reconnect_next_time() -> None:
    """Make Django close the connection at the end of this request, or before the next."""
    connection.close_at = time.monotonic()
