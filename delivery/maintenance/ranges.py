"""Ranges of messages with their own partitions.

They are created ahead of the messages, and dropped by retention. Creating or dropping a partition
blocks all statements on the table, so the lock times out after a fifth of a second and is tried
again later. `maintenance/README.md` has the details.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import OperationalError, connection, transaction

from delivery.database import queries
from delivery.models import Delivery, Message, MessageRange
from delivery.models.delivery import ids_of_message

log = logging.getLogger(__name__)

SMALLEST = 100_000
# Ids drawn but not visible yet when the next range begins after the newest message.
MARGIN = 10_000
LOCK_MILLISECONDS = 200
LOCK_NOT_AVAILABLE = "55P03"


class RangeBusyError(Exception):
    """Another transaction holds a needed lock; a later try may succeed."""


def is_due(_: datetime) -> bool:
    """Return whether `make_ahead` has something to do."""
    return queries.is_true("is_range_due")


def make_ahead() -> int:
    """Create the next range if the newest range is in use; return how many were created.

    Returns 0 also if the tables are busy.
    """
    newest = MessageRange.objects.order_by("-first_id").first()
    last_id, of_a_day = queries.row("newest_ids", {})
    if newest is not None and last_id < newest.first_id:
        return 0
    first = 0 if newest is None else newest.until_id
    if last_id >= first:
        first = last_id + MARGIN
    parameters = {"first": first, "until": first + max(of_a_day, SMALLEST)}
    try:
        with briefly():
            queries.execute_statement("make_range", parameters)
    except RangeBusyError:
        log.info("the tables are busy, the range is created later", extra=parameters)
        return 0
    log.info("range made", extra=parameters)
    return 1


def drop_emptied(*, until_id: int) -> int:
    """Drop the empty ranges that end before a message; return their number."""
    return sum(_drop_emptied(old) for old in MessageRange.objects.filter(until_id__lte=until_id))


def _drop_emptied(old: MessageRange) -> bool:
    if not _is_empty(old):
        return False
    try:
        with briefly():
            lock_range(old)
            # A replay may have restored a message meanwhile.
            if not _is_empty(old):
                return False
            drop_range(old)
    except RangeBusyError:
        log.info("the tables are busy, the range is dropped later", extra={"first": old.first_id})
        return False
    return True


def _is_empty(old: MessageRange) -> bool:
    messages = Message.objects.filter(pk__gte=old.first_id, pk__lt=old.until_id)
    ids = ids_of_message(old.first_id)[0], ids_of_message(old.until_id - 1)[1]
    return not messages.exists() and not Delivery.objects.filter(pk__range=ids).exists()


@contextmanager
def briefly() -> Iterator[None]:
    """Set a lock time-out of a fifth of a second in the block.

    On a time-out raises RangeBusyError, and the block is rolled back.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_MILLISECONDS}ms"]
            )
            yield
            cursor.execute("SET LOCAL lock_timeout = 0")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise RangeBusyError from error


def lock_range(old: MessageRange) -> None:
    """Lock the range's rows against all others until the transaction ends, except against reads."""
    queries.execute_statement("lock_range", {"first": old.first_id})


def drop_range(old: MessageRange) -> None:
    """Drop the partitions of a held range with all their rows: the last statement of a transaction.

    From then until the transaction ends, all other transactions wait for the tables.
    """
    queries.execute_statement("drop_range", {"first": old.first_id})
    log.info("range dropped", extra={"first": old.first_id})
