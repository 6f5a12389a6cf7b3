"""The journal in the console: events, their subjects, and the people who caused them."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from delivery.console.journal.filters import (
    DeliveryFilter,
    JournalKindFilter,
    LaneFilter,
    TextFilter,
)
from delivery.console.shared.export import ExportedAdmin
from delivery.console.shared.input_filters import Since, Until
from delivery.console.shared.list_filters import MessageFilter, SubscriptionFilter
from delivery.console.shared.live import LiveAdmin
from delivery.console.shared.times import with_times
from delivery.models import JournalEntry, Lane
from delivery.models.message import public_id
from subscriptions.models import Subscription


@admin.register(JournalEntry)
class JournalEntryAdmin(LiveAdmin, ExportedAdmin):
    empty_text = (
        "The journal records events: messages without a subscription, "
        "lanes that block and resume, actions of people."
    )
    list_display = ["when", "what", "shown_text", "subject", "who"]
    list_display_links = None
    list_filter = [
        JournalKindFilter,
        TextFilter,
        MessageFilter,
        DeliveryFilter,
        SubscriptionFilter,
        LaneFilter,
        Since,
        Until,
    ]

    def complete(self, rows: Sequence[Any]) -> None:
        """Add the names of existing lanes and subscriptions."""
        lane_ids = {row.lane_id for row in rows if row.lane_id}
        lanes = Lane.objects.filter(pk__in=lane_ids).select_related("subscriber")
        wanted = {row.subscription_id for row in rows if row.subscription_id}
        subscriptions = Subscription.objects.filter(pk__in=wanted).select_related("subscriber")
        lane_names = {
            lane.pk: str(lane) for lane in lanes.only("kind", "number", "subscriber__name")
        }
        names = {row.pk: str(row) for row in subscriptions.only("name", "subscriber__name")}
        for row in rows:
            row.lane_name = lane_names.get(row.lane_id)
            row.subscription_name = names.get(row.subscription_id)

    def exported(self, row: JournalEntry) -> dict[str, Any]:
        return {
            "id": row.pk,
            "at": row.at,
            "kind": row.kind,
            "text": row.text,
            "actor": row.actor or "Inturn",
            "message": public_id(row.message_id) if row.message_id else None,
            "delivery": row.delivery_id,
            "subscription": row.subscription_id,
            "lane": row.lane_id,
        }

    @admin.display(description="event")
    def what(self, row: JournalEntry) -> SafeString:
        return format_html('<span title="{}">{}</span>', row.get_kind_display(), row.kind)

    @admin.display(description="text")
    def shown_text(self, row: JournalEntry) -> SafeString:
        return with_times(row.text)

    @admin.display(description="object")
    def subject(self, row: Any) -> SafeString | str:
        return (
            format_html_join(", ", '<a class="inturn-link" href="{}">{}</a>', _subjects(row)) or "–"
        )

    @admin.display(description="actor")
    def who(self, row: JournalEntry) -> str:
        return row.actor or "Inturn"


def _subjects(row: Any) -> list[tuple[str, str]]:
    """Return the address and text of each subject of an entry; the subject itself may be gone."""
    subjects = []
    if row.message_id is not None:
        subjects.append((_page("delivery_message", row.message_id), public_id(row.message_id)))
    if row.delivery_id is not None:
        subjects.append(
            (_page("delivery_delivery", row.delivery_id), f"delivery {row.delivery_id}")
        )
    if row.subscription_id is not None:
        text = row.subscription_name or f"subscription {row.subscription_id}"
        status = reverse("admin:subscriptions_subscription_status", args=[row.subscription_id])
        subjects.append((status, text))
    if row.lane_name is not None:
        lanes = reverse("admin:delivery_lane_changelist")
        # Lanes without a subscriber are few, and the search does not cover them.
        query = "" if ":" in row.lane_name else f"?{urlencode({'q': row.lane_name})}"
        subjects.append((f"{lanes}{query}", f"lane {row.lane_name}"))
    return subjects


def _page(name: str, id: int) -> str:
    return reverse(f"admin:{name}_change", args=[id])
