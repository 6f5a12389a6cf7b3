"""Whether an error means that the database is away for now: it does not answer, or it takes no changes.

It takes none while a standby answers in its place (after a fail-over, until it is promoted), or while an administrator
has made it read-only. A session may stay so when others may write again: who meets this connects anew.
"""

import time

from django.db import InterfaceError, OperationalError, connection
from psycopg.errors import ReadOnlySqlTransaction


def is_read_only(error: BaseException | None) -> bool:
    """Whether a change was refused because the database takes none now. Django's error or psycopg's."""
    return isinstance(error, ReadOnlySqlTransaction) or (
        error is not None and isinstance(error.__cause__, ReadOnlySqlTransaction)
    )


def is_away(error: BaseException | None) -> bool:
    """Whether the same may well succeed later. Deadlocks are among these, too."""
    return isinstance(error, OperationalError | InterfaceError) or is_read_only(error)


def connect_anew_next_time() -> None:
    """Let Django close its connection at the end of this request, or before the next."""
    connection.close_at = time.monotonic()
