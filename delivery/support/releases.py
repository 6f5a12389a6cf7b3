"""The end of holds: those whose time is over are released, and lanes that have caught up send as fast as they can again.

A hold ends by one UPDATE in the duty's transaction, with its journal entry and the notification of the senders: who is killed
before the commit has released nothing, and the next turn does. The row is locked and looked at again then, so a hold that a
person prolonged meanwhile stays. Times are the database's.
"""

from django.db.models.functions import Now

from delivery.database import queries
from delivery.support import toggle
from subscriptions.models import Installation, Subscriber, Subscription

# What one transaction releases of each kind.
BATCH = 100


def release_due() -> int:
    """Release what was to be held until now, and return how many."""
    released = 0
    for model in (Installation, Subscriber, Subscription):
        due = model._default_manager.filter(held_until__lte=Now())
        # Who is changing it meanwhile is asked again by the next turn.
        for row in due.order_by("pk").select_for_update(of=("self",), no_key=True, skip_locked=True)[:BATCH]:
            toggle.activate(row, actor="")
            released += 1
    return released


def end_catching_up() -> int:
    """End the rate of lanes in which nothing waits any more that may have been held; return of how many."""
    return len(queries.rows("end_catching_up", {}))
