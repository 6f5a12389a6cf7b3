"""The log of payload views in the console: who saw which message's payload, and when."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.shared.export import ExportedAdmin
from delivery.console.shared.input_filters import ExactText, Since, Until
from delivery.console.shared.list_filters import MessageFilter
from delivery.console.shared.times import ago
from delivery.models import PayloadView
from delivery.models.message import public_id


class WhoFilter(ExactText):
    title = "Who"
    parameter_name = lookup = "actor"


class SeenSince(Since):
    column = "first_at"


class SeenUntil(Until):
    column = "first_at"


@admin.register(PayloadView)
class PayloadViewAdmin(ExportedAdmin):
    empty_text = (
        "Everyone who opened a message's body and header values is listed here: "
        "one row per person, message and hour, with the number of views."
    )
    list_display = ["who", "message", "first", "last", "views"]
    list_display_links = None
    list_filter = [WhoFilter, MessageFilter, SeenSince, SeenUntil]

    def exported(self, row: PayloadView) -> dict[str, Any]:
        return {
            "id": row.pk,
            "actor": row.actor,
            "message": public_id(row.message_id),
            "first_at": row.first_at,
            "last_at": row.last_at,
            "views": row.views,
        }

    @admin.display(description="user")
    def who(self, row: PayloadView) -> str:
        return row.actor

    @admin.display(description="message")
    def message(self, row: PayloadView) -> SafeString:
        url = reverse("admin:delivery_message_change", args=[row.message_id])
        return format_html(
            '<a class="inturn-link" href="{}">{}</a>', url, public_id(row.message_id)
        )

    @admin.display(description="first seen")
    def first(self, row: PayloadView) -> SafeString | str:
        return ago(row.first_at, now=timezone.now())

    @admin.display(description="last seen within the hour")
    def last(self, row: PayloadView) -> SafeString | str:
        return ago(row.last_at, now=timezone.now())
