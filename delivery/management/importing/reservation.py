"""Ids reserved for an old broker's messages, to be sent before newer messages."""

import logging
from collections.abc import Sequence
from contextlib import suppress

from django.db import IntegrityError, transaction

from delivery.database import queries
from delivery.maintenance.ranges import MARGIN, RangeBusyError, briefly
from delivery.models import MessageRange, MessageReservation

log = logging.getLogger(__name__)

MAX_MESSAGES = 10_000_000


class NoRoomError(Exception):
    """Another import has used the rest of the reservation."""


def reserve_ids(count: int) -> MessageReservation:
    """Reserve ids for so many messages: all messages published from now on have greater ids."""
    (first,) = queries.row("reserve_messages", {"margin": MARGIN, "count": count})
    reservation = MessageReservation.objects.create(
        first_id=first, until_id=first + count, next_id=first
    )
    _make_range(reservation)
    return reservation


def reservation_with_room(count: int) -> MessageReservation | None:
    """Return the oldest reservation with ids for so many messages."""
    for reservation in MessageReservation.objects.order_by("first_id"):
        if reservation.until_id - reservation.next_id >= count:
            return reservation
    return None


def take_ids(reservation: MessageReservation, count: int) -> Sequence[int]:
    """Take the next ids; raise NoRoomError. Call it in a transaction.

    Another import waits here until this transaction ends, and a failed transaction gives the ids
    back.
    """
    locked = MessageReservation.objects.select_for_update().get(pk=reservation.pk)
    if locked.until_id - locked.next_id < count:
        raise NoRoomError
    first = locked.next_id
    locked.next_id = first + count
    locked.save(update_fields=["next_id"])
    return range(first, first + count)


def _make_range(reservation: MessageReservation) -> None:
    """Make partitions for the ids; without them the messages would be in the default partition."""
    newest = MessageRange.objects.order_by("-first_id").first()
    first = max(reservation.first_id, newest.until_id if newest else 0)
    if first >= reservation.until_id:
        return
    parameters = {"first": first, "until": reservation.until_id}
    # The chores may make the same range at this moment, or the tables may be busy.
    with suppress(RangeBusyError, IntegrityError), transaction.atomic(), briefly():
        queries.execute_statement("make_range", parameters)
        log.info("range made", extra=parameters)
