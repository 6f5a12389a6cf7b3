"""Subscribers in the console, with their keys."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from subscriptions.admin.applications.key_list import KeyList
from subscriptions.admin.event_types.form import SubscriberForm
from subscriptions.admin.shared.cells import two_lines_of
from subscriptions.admin.shared.recorded_admin import RecordedAdmin
from subscriptions.admin.shared.subscription_counts import subscription_count
from subscriptions.models import Processing, Subscriber, SubscriptionStatus
from subscriptions.models.subscriber import MatchMode


class BaseSubscriberAdmin(RecordedAdmin):
    """The base class; `delivery.console.subscribers.admin` adds the state of deliveries."""

    form = SubscriberForm
    empty_text = (
        "A subscriber is an application that receives messages; its subscriptions choose them."
    )
    list_display = ["name", "subscription_count", "sent", "about"]
    list_filter = ["processing", "match_mode"]
    search_fields = ["name"]
    search_help_text = "Search by name"
    ordering = ["name"]
    fieldsets = [
        (None, {"fields": ["name", "description", "match_mode", "application"]}),
        (
            "Old Event Queue",
            {"fields": ["queue_id", "new_queue_password"], "classes": ["collapse"]},
        ),
        (
            "Sending",
            {
                "fields": [
                    "processing",
                    "max_in_flight",
                    "by_priority",
                    "max_queued_to_send",
                    "refill_level",
                    "header_lines",
                ]
            },
        ),
    ]
    inlines = [KeyList]
    change_form_outer_after_template = "console/new_key.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Subscriber]:
        counted: QuerySet[Subscriber] = (
            super()
            .get_queryset(request)
            .annotate(
                n=subscription_count("subscriber"),
                n_active=subscription_count("subscriber", status=SubscriptionStatus.ACTIVE),
            )
        )
        return counted

    @admin.display(description="processing")
    def sent(self, row: Subscriber) -> SafeString | str:
        """Return the bare names, which the form explains; the match mode if it is not the usual."""
        processing = str(row.processing)
        if row.processing == Processing.CONCURRENT:
            processing += f", {row.max_in_flight} at once" + ", by priority" * row.by_priority
        if row.match_mode == MatchMode.ALL:
            return processing
        return format_html(
            '<span class="inturn-lines">{}<span class="inturn-second">match mode {}</span></span>',
            processing,
            row.match_mode,
        )

    @admin.display(description="description")
    def about(self, row: Subscriber) -> SafeString | None:
        return two_lines_of(row.description)

    @admin.display(description="subscriptions")
    def subscription_count(self, row: Any) -> SafeString:
        url = reverse("admin:subscriptions_subscription_changelist")
        text = f"{row.n_active} ACTIVE" + (
            f", {row.n - row.n_active} not ACTIVE" if row.n > row.n_active else ""
        )
        return format_html(
            '<a class="inturn-link" href="{}?subscriber={}">{}</a>', url, row.name, text
        )
