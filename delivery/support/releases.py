"""The end of holds: expired holds are released, and caught-up lanes lose their rate.

A hold ends by a single UPDATE in the duty's transaction, together with the journal entry and the
notification of senders: a crash before the commit releases nothing, and the next run repeats it.
The row is locked and checked again, so a hold prolonged by a person meanwhile stays. All times are
the database's.
"""

import logging
from datetime import datetime

from django.db import OperationalError, transaction
from django.db.models.functions import Now

from delivery.database import queries
from delivery.support import toggle
from subscriptions.database_away import is_locked
from subscriptions.models import Installation, Subscriber, Subscription

log = logging.getLogger(__name__)

# The most rows of each model released by a transaction.
BATCH = 100


def is_due(_: datetime) -> bool:
    """Return whether `release_due` or `end_catching_up` may find something."""
    return queries.is_true("is_release_due")


def release_due() -> int:
    """Release the expired holds, and return their number.

    A hold with a row locked by another session is left to the next run.
    """
    released = 0
    for model in (Installation, Subscriber, Subscription):
        due = model._default_manager.filter(held_until__lte=Now())
        # Rows being changed by somebody are left to the next run.
        for row in due.order_by("pk").select_for_update(
            of=("self",), no_key=True, skip_locked=True
        )[:BATCH]:
            try:
                with transaction.atomic():
                    toggle.activate_owner(row, actor="")
            except OperationalError as error:
                if not is_locked(error):
                    raise
                log.warning("a row is locked", extra={"release": str(row)})
                continue
            released += 1
    return released


def end_catching_up() -> int:
    """End the rate of lanes without waiting deliveries possibly held.

    Return their number.
    """
    return len(queries.rows("end_catching_up", {}))
