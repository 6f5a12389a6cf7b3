"""The journal in the console: what happened, to what, and who did it."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.admin.filters import MessageFilter
from delivery.models import JournalEntry, JournalKind
from delivery.models.message import public_id
from subscriptions.admin.keyset import KeysetAdmin
from subscriptions.admin.list_filters import ChoiceFilter, MomentFilter
from subscriptions.admin.times import ago


class KindFilter(ChoiceFilter):
    title = "What"
    parameter_name = lookup = "kind"
    offered = JournalKind.values


class Since(MomentFilter):
    title = "Since (UTC)"
    parameter_name = "since"
    lookup = "at__gte"


class Until(MomentFilter):
    title = "Until (UTC)"
    parameter_name = "until"
    lookup = "at__lt"


@admin.register(JournalEntry)
class JournalEntryAdmin(KeysetAdmin):
    empty_text = (
        "Here stands what happened: messages that nobody wants, lanes that block and resume, what people did."
    )
    list_display = ["when", "what", "text", "subject", "who"]
    list_display_links = None
    list_filter = [KindFilter, MessageFilter, Since, Until]

    @admin.display(description="when")
    def when(self, row: JournalEntry) -> SafeString | str:
        return ago(row.at, now=timezone.now())

    @admin.display(description="what")
    def what(self, row: JournalEntry) -> SafeString:
        return format_html('<span title="{}">{}</span>', row.get_kind_display(), row.kind)

    @admin.display(description="about")
    def subject(self, row: JournalEntry) -> SafeString | str:
        links = [
            (reverse(f"admin:{page}_change", args=[id]), text)
            for page, id, text in _subjects(row)
            if id is not None
        ]
        return format_html_join(", ", '<a class="inturn-link" href="{}">{}</a>', links) or "–"

    @admin.display(description="who")
    def who(self, row: JournalEntry) -> str:
        return row.actor or "Inturn"


def _subjects(row: JournalEntry) -> list[tuple[str, Any, str]]:
    """Return page, id and text of each thing an entry is about; the thing itself may be gone."""
    return [
        ("delivery_message", row.message_id, public_id(row.message_id or 0)),
        ("delivery_delivery", row.delivery_id, f"delivery {row.delivery_id}"),
        ("subscriptions_subscription", row.subscription_id, f"subscription {row.subscription_id}"),
    ]
