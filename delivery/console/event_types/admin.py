"""Event types as a catalogue, with their newest message, their subscribers and curl commands."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.event_types import catalogue
from delivery.console.event_types.publishing import PublishPages
from delivery.console.shared.rights import may_publish
from delivery.console.shared.row_extras import CompletedList
from subscriptions.admin.event_types.admin import BaseEventTypeAdmin
from subscriptions.admin.shared.base import id_of
from subscriptions.admin.shared.times import ago
from subscriptions.models import EventType


@admin.register(EventType)
class EventTypeAdmin(PublishPages, CompletedList, BaseEventTypeAdmin):
    list_display = [
        "name",
        "kind_word",
        "durability_word",
        "subscription_count",
        "published",
        "described",
        "about",
    ]
    change_form_outer_before_template = "console/event_type.html"

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
        if violation := catalogue.violation_of_sample(obj):
            text = (
                f"The sample of {obj} breaks its JSON Schema at "
                f"{violation.path}: {violation.message}"
            )
            messages.warning(request, f"{text} Inturn would reject it.")

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
