"""Selecting many deliveries by a filter, for a bulk job, and counting them before it begins.

A filter has status (a list), subscriber, subscription (an id or a name), event_type, message (a number), since
and until (of the publication, as text); what it does not have selects all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db import connection
from django.db.models import F, Q, QuerySet
from django.utils.dateparse import parse_datetime

from delivery.lifecycle.transitions import CANCELLABLE, RESUBMITTABLE
from delivery.models import BulkVerb, Delivery, Status
from delivery.models.delivery import DeliveryQuerySet
from delivery.states import OPEN
from subscriptions.models import Mode

# Counting ends here: it reads every delivery that it counts.
COUNT_LIMIT = 100_000
SAMPLE = 10

# What each verb may be done to; without a status in the filter the second: what a person decided, or has to
# decide, is selected only if its status is named.
OFFERED = {BulkVerb.RESUBMIT: RESUBMITTABLE, BulkVerb.CANCEL: CANCELLABLE}
_UNNAMED = {
    BulkVerb.RESUBMIT: (Status.REJECTED, Status.UNSUPPORTED, Status.FAILED, Status.EXPIRED),
    BulkVerb.CANCEL: OPEN,
}
_LOOKUPS = {
    "subscriber": "subscription__subscriber__name",
    "event_type": "message__event_type__name",
}
# Not what a publisher waited for (SYNC).
_HAS_A_PLACE = Q(lane__isnull=False) | Q(subscription__mode=Mode.PULL)
_MOMENTS = {"since": "message__published_at__gte", "until": "message__published_at__lt"}
_LONGEST_ID = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPreview:
    """What is selected: how many of each status, up to COUNT_LIMIT + 1 together, and the ids of the oldest."""

    statuses: dict[str, int]
    sample: list[int]
    oldest_at: datetime | None

    @property
    def count(self) -> int:
        return sum(self.statuses.values())


def selected(chosen: Mapping[str, Any], verb: str = BulkVerb.RESUBMIT) -> DeliveryQuerySet:
    """Return, in the order of their ids, what a filter selects of that which the verb may be done to."""
    statuses = chosen.get("status") or _UNNAMED[BulkVerb(verb)]
    rows = Delivery.objects.filter(_HAS_A_PLACE, one_of(statuses))
    rows = rows.filter(**{lookup: chosen[name] for name, lookup in _LOOKUPS.items() if name in chosen})
    if "message" in chosen:
        rows = rows.of_message(chosen["message"])
    moments = {lookup: parse_datetime(chosen[name]) for name, lookup in _MOMENTS.items() if name in chosen}
    return rows.filter(_of_subscription(chosen.get("subscription")), **moments).order_by("id")


def preview_selection(chosen: Mapping[str, Any], verb: str = BulkVerb.RESUBMIT) -> SelectionPreview:
    rows = selected(chosen, verb)
    statuses = counted_by_status(rows)
    if sum(statuses.values()) <= COUNT_LIMIT:
        # Those that were counted are sorted: to find few in the order of ids, all that was delivered would be read.
        rows = rows.order_by(F("id") + 0)
    sample = list(rows.values_list("id", flat=True)[:SAMPLE])
    oldest = Delivery.objects.filter(pk__in=sample[:1]).values_list("message__published_at", flat=True)
    return SelectionPreview(statuses=statuses, sample=sample, oldest_at=oldest.first())


def counted_by_status(rows: QuerySet[Delivery]) -> dict[str, int]:
    # In any order, for the same reason.
    found, parameters = rows.order_by().values("status")[: COUNT_LIMIT + 1].query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT status, count(*) FROM ({found}) AS found GROUP BY status ORDER BY count(*) DESC, status",  # noqa: S608 - Django's SQL
            parameters,
        )
        return dict(cursor.fetchall())


def one_of(statuses: Iterable[str]) -> Q:
    """Each by itself, so that each may be found by an index of its own."""
    return reduce(or_, (Q(status=status) for status in statuses))


def _of_subscription(text: str | None) -> Q:
    if text is None:
        return Q()
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID:
        return Q(subscription=int(text))
    return Q(subscription__name=text)
