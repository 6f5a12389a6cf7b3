"""Event types in the console."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from subscriptions.admin.cells import two_lines_of
from subscriptions.admin.forms import EventTypeForm
from subscriptions.admin.recorded import RecordedAdmin
from subscriptions.models import EventType
from subscriptions.names import is_reserved


@admin.register(EventType)
class EventTypeAdmin(RecordedAdmin):
    form = EventTypeForm
    empty_text = "An event type names what may be published; it comes first."
    list_display = [
        "name",
        "kind_word",
        "durability_word",
        "content_type",
        "ttl",
        "subscription_count",
        "about",
    ]
    list_filter = ["kind", "durability"]
    search_fields = ["name"]
    search_help_text = "Search by name"
    ordering = ["name"]
    fieldsets = [
        (None, {"fields": ["name", "kind", "content_type", "durability", "ttl_seconds", "description"]}),
        ("Sample", {"fields": ["sample", "json_schema"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EventType]:
        counted: QuerySet[EventType] = super().get_queryset(request).annotate(n=Count("subscriptions"))
        return counted

    def get_readonly_fields(self, request: HttpRequest, obj: EventType | None = None) -> Sequence[str]:
        """What was published is on its way as the kind that it had."""
        return [*super().get_readonly_fields(request, obj), *(["kind"] if obj else [])]

    def has_change_permission(self, request: HttpRequest, obj: EventType | None = None) -> bool:
        """What Inturn publishes itself stays as it is."""
        return bool(super().has_change_permission(request, obj)) and not (obj and is_reserved(obj.name))

    def has_delete_permission(self, request: HttpRequest, obj: EventType | None = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and not (obj and is_reserved(obj.name))

    @admin.display(description="kind", ordering="kind")
    def kind_word(self, row: EventType) -> str:
        """The word alone, as of the durability: the form says what it means."""
        return row.kind

    @admin.display(description="durability", ordering="durability")
    def durability_word(self, row: EventType) -> str:
        return row.durability

    @admin.display(description="time to live", ordering="ttl_seconds")
    def ttl(self, row: EventType) -> str | None:
        return None if row.ttl_seconds is None else f"{row.ttl_seconds:,} s"

    @admin.display(description="description")
    def about(self, row: EventType) -> SafeString | None:
        return two_lines_of(row.description)

    @admin.display(description="subscriptions", ordering="n")
    def subscription_count(self, row: Any) -> int:
        count: int = row.n
        return count
