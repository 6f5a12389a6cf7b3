"""Event types as a catalogue, with their newest message, their subscribers and curl commands."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.event_types import catalogue
from delivery.console.event_types.form import EventTypeForm
from delivery.console.event_types.publishing import PublishPages
from delivery.console.shared.base import id_of
from delivery.console.shared.cells import ForwardedNames, lines, two_lines_of
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.rights import may_publish
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.subscription_counts import active_subscriptions, subscription_count
from delivery.console.shared.times import ago
from subscriptions.checks.event_type import case_warning
from subscriptions.models import EventType, SubscriptionStatus
from subscriptions.values.names import is_reserved

_LOOKED_AT = ["name", "content_type", "durability", "ttl_seconds", "forwarded_names"]


@admin.register(EventType)
class EventTypeAdmin(PublishPages, CompletedList, ForwardedNames, RecordedAdmin):
    form = EventTypeForm
    empty_text = "An event type is a name under which messages are published. Create it first."
    list_filter = ["kind", "durability"]
    search_fields = ["name"]
    search_help_text = "Search by name"
    ordering = ["name"]
    fieldsets = [
        (
            None,
            {
                "fields": [
                    "name",
                    "kind",
                    "content_type",
                    "durability",
                    "ttl_seconds",
                    "forward_headers",
                    "errors_when",
                    "description",
                ]
            },
        ),
        ("Sample", {"fields": ["sample", "json_schema"]}),
    ]
    list_display = [
        "name",
        "kind_word",
        "durability_word",
        "subscription_count",
        "published",
        "described",
        "about",
    ]
    change_form_outer_before_template = "console/event_types/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[EventType]:
        counted: QuerySet[EventType] = (
            super()
            .get_queryset(request)
            .annotate(
                n=subscription_count("event_type"),
                n_active=subscription_count("event_type", status=SubscriptionStatus.ACTIVE),
            )
        )
        return counted

    def get_fieldsets(self, request: HttpRequest, obj: EventType | None = None) -> list[Any]:
        """Return few fields for readers, because the catalogue above has the rest."""
        fieldsets: list[Any] = super().get_fieldsets(request, obj)
        may_change = obj is None or self.has_change_permission(request, obj)
        return fieldsets if may_change else [(None, {"fields": _LOOKED_AT})]

    def get_readonly_fields(
        self, request: HttpRequest, obj: EventType | None = None
    ) -> Sequence[str]:
        """Return `kind` for a stored row, because published messages are delivered by it."""
        return [
            *super().get_readonly_fields(request, obj),
            "forwarded_names",
            *(["kind"] if obj else []),
        ]

    def has_change_permission(self, request: HttpRequest, obj: EventType | None = None) -> bool:
        """Refuse changes of Inturn's own event types."""
        return bool(super().has_change_permission(request, obj)) and not (
            obj and is_reserved(obj.name)
        )

    def has_delete_permission(self, request: HttpRequest, obj: EventType | None = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and not (
            obj and is_reserved(obj.name)
        )

    def complete(self, rows: Sequence[Any]) -> None:
        newest = catalogue.newest_of([row.pk for row in rows])
        for row in rows:
            row.newest = newest.get(row.pk)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown = dict(extra_context or {})
        row = EventType.objects.filter(pk=id_of(object_id) or 0).first()
        if row is not None:
            shown["entry"] = catalogue.read_catalogue_entry(row)
            shown["may_publish"] = may_publish(request.user)
        page: HttpResponse = super().change_view(request, object_id, form_url, shown)
        return page

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if "name" in form.changed_data and (warning := case_warning(obj.name)):
            messages.warning(request, warning)
        if violation := catalogue.violation_of_sample(obj):
            text = (
                f"The sample of {obj} breaks its JSON Schema at "
                f"{violation.path}: {violation.message}"
            )
            messages.warning(request, f"{text} Inturn would reject it.")

    @admin.display(description="kind", ordering="kind")
    def kind_word(self, row: EventType) -> str:
        """Return the bare name, as for durability; the form explains the meaning."""
        return row.kind

    @admin.display(description="durability", ordering="durability")
    def durability_word(self, row: EventType) -> SafeString | str:
        if row.ttl_seconds is None:
            return row.durability
        return lines(row.durability, f"expires after {row.ttl_seconds:,} s")

    @admin.display(description="description")
    def about(self, row: EventType) -> SafeString | None:
        return two_lines_of(row.description)

    @admin.display(description="subscriptions", ordering="n")
    def subscription_count(self, row: Any) -> SafeString:
        return active_subscriptions(row, "event_type")

    @admin.display(description="last message")
    def published(self, row: Any) -> SafeString | str:
        if row.newest is None:
            return "never"
        return format_html(
            '<a class="inturn-link" href="{}?event_type={}">{}</a>',
            reverse("admin:delivery_message_changelist"),
            row.name,
            ago(row.newest.published_at, now=timezone.now()),
        )

    @admin.display(description="has")
    def described(self, row: EventType) -> str | None:
        parts = ["sample"] if row.sample is not None else []
        parts += ["schema"] if row.json_schema is not None else []
        return ", ".join(parts) or None
