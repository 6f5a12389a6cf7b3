"""Filters of a developer's lists, which name nothing that other publishers have."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from delivery.console.shared.input_filters import ExactText
from subscriptions.models import EventType


class OwnEventTypeFilter(ExactText):
    """Filter by the name of an event type, without suggesting any."""

    title = "Event type"
    parameter_name = "event_type"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        found = EventType.objects.filter(name=self.typed()).values_list("pk", flat=True)
        return queryset.filter(event_type__in=list(found))
