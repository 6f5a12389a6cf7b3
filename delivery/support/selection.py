"""Selection of deliveries by a filter, for a bulk job, and their count before it starts.

A filter has status (a list), subscriber, subscription (an id, a name or subscriber/subscription),
event_type, message (a number), incident (the id of an incident of failures), since and until (of
the publication, as text); a missing condition selects all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db import connection
from django.db.models import F, Q, QuerySet

from delivery.lifecycle.transitions import CANCELLABLE, RESUBMITTABLE
from delivery.models import BulkVerb, Delivery, IncidentDelivery, Status
from delivery.models.delivery import DeliveryQuerySet
from delivery.states import OPEN
from subscriptions.models import JoinMode, Mode
from subscriptions.values.references import subscription_condition
from subscriptions.values.times import parse_time

# Counting stops here, because it reads every counted delivery.
COUNT_LIMIT = 100_000
SAMPLE = 10

# OFFERED: the statuses for each verb. _UNNAMED: those for a filter without a status, because
# deliveries settled by a person, or waiting for a decision, are selected by name only.
OFFERED = {BulkVerb.RESUBMIT: RESUBMITTABLE, BulkVerb.CANCEL: CANCELLABLE}
_UNNAMED = {
    BulkVerb.RESUBMIT: (Status.REJECTED, Status.UNSUPPORTED, Status.FAILED, Status.EXPIRED),
    BulkVerb.CANCEL: OPEN,
}
_LOOKUPS = {
    "subscriber": "subscription__subscriber__name",
    "event_type": "message__event_type__name",
}
# Without the deliveries of SYNC messages.
_HAS_A_PLACE = (
    Q(lane__isnull=False)
    | Q(subscription__mode=Mode.PULL)
    | Q(subscription__join_mode=JoinMode.ALL)
)
_MOMENTS = {"since": "message__published_at__gte", "until": "message__published_at__lt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPreview:
    """The counts of a selection by status, together up to COUNT_LIMIT + 1, and the oldest ids."""

    statuses: dict[str, int]
    sample: list[int]
    oldest_at: datetime | None

    @property
    def count(self) -> int:
        return sum(self.statuses.values())


def selected_deliveries(
    chosen: Mapping[str, Any], verb: str = BulkVerb.RESUBMIT
) -> DeliveryQuerySet:
    """Return the selected deliveries open to the verb, ordered by id."""
    statuses = chosen.get("status") or _UNNAMED[BulkVerb(verb)]
    rows = Delivery.objects.filter(_HAS_A_PLACE, one_of(statuses))
    rows = rows.filter(
        **{lookup: chosen[name] for name, lookup in _LOOKUPS.items() if name in chosen}
    )
    if "message" in chosen:
        rows = rows.of_message(chosen["message"])
    if "incident" in chosen:
        failed = IncidentDelivery.objects.filter(incident=chosen["incident"])
        rows = rows.filter(id__in=failed.values("delivery_id"))
    moments = {
        lookup: parse_time(chosen[name]) for name, lookup in _MOMENTS.items() if name in chosen
    }
    if "subscription" in chosen:
        rows = rows.filter(
            **subscription_condition(
                chosen["subscription"],
                id="subscription",
                name="subscription__name",
                subscriber="subscription__subscriber__name",
            )
        )
    return rows.filter(**moments).order_by("id")


def preview_selection(chosen: Mapping[str, Any], verb: str = BulkVerb.RESUBMIT) -> SelectionPreview:
    rows = selected_deliveries(chosen, verb)
    statuses = counted_by_status(rows)
    if sum(statuses.values()) <= COUNT_LIMIT:
        # Prevents a scan in the order of ids, which would read all delivered rows to find few: the
        # counted rows are sorted instead.
        rows = rows.order_by(F("id") + 0)
    sample = list(rows.values_list("id", flat=True)[:SAMPLE])
    oldest = Delivery.objects.filter(pk__in=sample[:1]).values_list(
        "message__published_at", flat=True
    )
    return SelectionPreview(statuses=statuses, sample=sample, oldest_at=oldest.first())


def counted_by_status(rows: QuerySet[Delivery]) -> dict[str, int]:
    # Without an order, for the same reason.
    found, parameters = rows.order_by().values("status")[: COUNT_LIMIT + 1].query.sql_with_params()
    # `found` is Django's SQL.
    counted = f"SELECT status, count(*) FROM ({found}) AS found GROUP BY status"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(f"{counted} ORDER BY count(*) DESC, status", parameters)
        return dict(cursor.fetchall())


def one_of(statuses: Iterable[str]) -> Q:
    """Return an OR of single statuses, so each can use a separate index."""
    return reduce(or_, (Q(status=status) for status in statuses))
