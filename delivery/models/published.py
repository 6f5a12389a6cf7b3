"""Bounds of the ids of messages published in an interval, as parts of a larger statement.

Ids are nearly in the order of publication. So the id of a message at a safe distance bounds those
to read, and chooses the partitions while the statement runs. By the time alone it would read all
messages, in the order of their ids.

Imported messages are the exception: their ids were reserved before, perhaps long before they were
stored. A reservation is used in order, so the newest message shows whether it concerns a time.
"""

from datetime import MAXYEAR, MINYEAR, datetime, timedelta

from django.db.models import (
    BigIntegerField,
    Case,
    Exists,
    F,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Least

from delivery.models.delivery import MAX_MESSAGE_ID
from delivery.models.message import Message
from delivery.models.old_broker import MessageReservation

# Only an imported message takes longer between time and id.
SLACK = timedelta(minutes=5)
LARGEST_MESSAGE_ID = MAX_MESSAGE_ID - 1


def first_ids_of_imports(since: datetime) -> QuerySet[MessageReservation, int]:
    """Return the lowest ids of the reservations used since then, the lowest first."""
    newest = Message.objects.filter(
        pk__gte=OuterRef("first_id"), pk__lt=OuterRef("next_id")
    ).order_by("-pk")
    return (
        MessageReservation.objects.annotate(newest=Subquery(newest.values("published_at")[:1]))
        .filter(newest__gte=since)
        .order_by("first_id")
        .values_list("first_id", flat=True)
    )


def limits_from(moment: datetime) -> QuerySet[Message, int]:
    """Return bounds above the ids of all earlier messages, the lowest certain bound first."""
    is_imported = Exists(
        MessageReservation.objects.filter(first_id__lte=OuterRef("pk"), until_id__gt=OuterRef("pk"))
    )
    limit = Case(
        When(is_imported, then=LARGEST_MESSAGE_ID),
        default=F("pk"),
        output_field=BigIntegerField(),
    )
    return (
        Message.objects.filter(published_at__gte=moment)
        .order_by("published_at")
        .annotate(limit=limit)
        .values_list("limit", flat=True)
    )


def lowest_id(since: datetime) -> Combinable:
    """Return an expression: no message published since then has a lower id."""
    # Computing with times at the ends of the calendar could overflow.
    if since.year <= MINYEAR:
        return Value(0)
    before = Message.objects.filter(published_at__lt=since - SLACK).order_by("-published_at")
    return Least(
        Coalesce(Subquery(before.values("pk")[:1]), 0),
        Coalesce(Subquery(first_ids_of_imports(since - SLACK)[:1]), LARGEST_MESSAGE_ID),
        output_field=BigIntegerField(),
    )


def id_limit(until: datetime) -> Combinable:
    """Return an expression: every message published before then has a lower id."""
    if until.year >= MAXYEAR:
        return Value(LARGEST_MESSAGE_ID)
    return Coalesce(Subquery(limits_from(until + SLACK)[:1]), LARGEST_MESSAGE_ID)
