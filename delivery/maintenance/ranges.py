"""Ranges of messages, each with partitions of its own: made ahead of the messages, and dropped by retention.

A range is to have about a day's messages, so that retention by days can drop whole ranges; a quiet installation has larger
ones. There is always a whole range ahead of the newest message. What is published without one, when no chores ran for
long, is stored in the default partitions, and the next range begins behind it.

To make or to drop a partition takes a lock that waits for every statement under way on the table, while all later ones wait
for it. So it is given up after a fifth of a second, and tried again: long statements do not stop publishing. Whoever drops a
range holds it first, and then looks whether it may go: this locks its partitions alone, against everybody who would change
them, and nobody who publishes or reads waits while it looks.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction

from delivery.database import queries
from delivery.models import Delivery, Message, MessageRange
from delivery.models.delivery import ids_of_message

log = logging.getLogger(__name__)

SMALLEST = 100_000
# Ids that may have been drawn, but are not visible yet, when the next range begins behind the newest message.
MARGIN = 10_000
LOCK_MILLISECONDS = 200
LOCK_NOT_AVAILABLE = "55P03"


class RangeBusyError(Exception):
    """Somebody else has locked what is needed; the same may succeed later."""


def make_ahead() -> int:
    """Make the next range if the newest one is in use; return how many were made, 0 also when the table is busy."""
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
            queries.execute("make_range", parameters)
    except RangeBusyError:
        log.info("the tables are busy, the range is created later", extra=parameters)
        return 0
    log.info("range made", extra=parameters)
    return 1


def drop_emptied(*, until_id: int) -> int:
    """Drop the ranges that end before a message and have nothing left; return how many."""
    return sum(_drop_emptied(old) for old in MessageRange.objects.filter(until_id__lte=until_id))


def _drop_emptied(old: MessageRange) -> bool:
    if not _is_empty(old):
        return False
    try:
        with briefly():
            hold(old)
            # A replay may have restored a message meanwhile.
            if not _is_empty(old):
                return False
            drop(old)
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
    """Give each lock that the block waits for a fifth of a second. Raises RangeBusyError, and nothing of the block is done."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_MILLISECONDS}ms"])
            yield
            cursor.execute("SET LOCAL lock_timeout = DEFAULT")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise RangeBusyError from error


def hold(old: MessageRange) -> None:
    """Let nobody else change, lock or add a row of the range until the transaction ends; reading goes on."""
    queries.execute("lock_range", {"first": old.first_id})


def drop(old: MessageRange) -> None:
    """Drop the partitions of a range that is held, with all that is in them: the last thing a transaction does.

    From then on until it ends, everybody else waits for the tables.
    """
    queries.execute("drop_range", {"first": old.first_id})
    log.info("range dropped", extra={"first": old.first_id})
