"""The filters of the journal: kind, subject, text and time."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from delivery.console.shared.base import id_of
from delivery.console.shared.input_filters import ChoiceFilter, ExactText
from delivery.models import JournalEntry, JournalKind, Lane

# A search for text covers only the newest entries: no index finds a part of a text.
SEARCHED = 100_000


class JournalKindFilter(ChoiceFilter):
    title = "What"
    parameter_name = lookup = "kind"
    offered = JournalKind.values


class DeliveryFilter(ExactText):
    """Filter by the id of a delivery. An invalid id matches nothing, rather than everything."""

    title = "Delivery"
    parameter_name = "delivery"
    lookup = "delivery_id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        return queryset.filter(delivery_id=id_of(self.typed()) or 0)


class LaneFilter(ExactText):
    """Filter by the name of a lane: the subscriber's name, or a name such as `queue:3`."""

    title = "Lane"
    parameter_name = "lane"
    lookup = "lane_id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        return queryset.filter(
            lane_id__in=_ids(Lane.objects.with_name().filter(Q(("name", self.typed()))))
        )


class TextFilter(ExactText):
    """Filter by a part of the text, among the newest entries."""

    title = f"Text (of the last {SEARCHED:,})"
    parameter_name = "text"
    lookup = "text__icontains"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        newest = JournalEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        return queryset.filter(text__icontains=self.typed(), pk__gt=newest - SEARCHED)


def _ids(rows: QuerySet[Any]) -> list[int]:
    # Load the ids first: the planner has statistics for a literal id, but none for a subquery's.
    return list(rows.values_list("pk", flat=True)[:100])
