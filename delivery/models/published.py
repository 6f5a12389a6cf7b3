"""Bounds of the ids of messages published in an interval, as parts of a larger statement.

Ids are nearly in the order of publication. So the id of a message at a safe distance bounds those
to read, and chooses the partitions while the statement runs. By the time alone it would read all
messages, in the order of their ids.
"""

from datetime import MAXYEAR, MINYEAR, datetime, timedelta

from django.db.models import Subquery, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from delivery.models.delivery import MAX_MESSAGE_ID
from delivery.models.message import Message

# No message takes longer between its time and its id.
SLACK = timedelta(minutes=5)
LARGEST_MESSAGE_ID = MAX_MESSAGE_ID - 1


def lowest_id(since: datetime) -> Combinable:
    """Return an expression: no message published since then has a lower id."""
    # Computing with times at the ends of the calendar could overflow.
    if since.year <= MINYEAR:
        return Value(0)
    before = Message.objects.filter(published_at__lt=since - SLACK).order_by("-published_at")
    return Coalesce(Subquery(before.values("pk")[:1]), 0)


def id_limit(until: datetime) -> Combinable:
    """Return an expression: every message published before then has a lower id."""
    if until.year >= MAXYEAR:
        return Value(LARGEST_MESSAGE_ID)
    after = Message.objects.filter(published_at__gte=until + SLACK).order_by("published_at")
    return Coalesce(Subquery(after.values("pk")[:1]), LARGEST_MESSAGE_ID)
