"""Subscribers in the console, with their health and their backlogs in lane and mailbox."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.health import recent as health
from delivery.console.health.sparkline import health_cell
from delivery.console.holding import cost
from delivery.console.holding.admin import HoldingAdmin
from delivery.console.holding.buttons import row_buttons
from delivery.console.publishers.key_list import KeyList
from delivery.console.shared.base import FEW_ROWS
from delivery.console.shared.cells import two_lines_of
from delivery.console.shared.labels import two_lines
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.state_cell import state_cell
from delivery.console.shared.status_page import StatusAdmin
from delivery.console.shared.subscription_counts import active_subscriptions, subscription_count
from delivery.console.subscribers import mailboxes
from delivery.console.subscribers.form import SubscriberForm
from delivery.console.subscribers.status import read_subscriber
from delivery.standing.reading import standing_of_subscribers
from subscriptions.models import Processing, Subscriber, SubscriptionStatus
from subscriptions.models.subscriber import MatchMode


@admin.register(Subscriber)
class SubscriberAdmin(StatusAdmin, HoldingAdmin, CompletedList, RecordedAdmin):
    form = SubscriberForm
    empty_text = (
        "A subscriber is an application that receives messages; its subscriptions choose them."
    )
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
    change_form_outer_after_template = "console/publishers/new_key.html"
    list_display = [
        "named",
        "state",
        "day",
        "backlog",
        "subscription_count",
        "sent",
        "about",
        "toggle",
    ]
    button_columns = ("toggle",)
    # The last day's figures of a subscriber cost time for each subscription of it.
    list_per_page = FEW_ROWS
    status_template = "console/subscribers/status.html"

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

    def status_rows(self) -> QuerySet[Subscriber]:
        return Subscriber.objects.all()

    def status_values(self, row: Subscriber, request: HttpRequest) -> dict[str, Any]:
        now, ids = timezone.now(), [row.pk]
        return {
            "status": read_subscriber(row, now=now),
            "cost": cost.cost_of_subscribers(ids)[row.pk],
            "health": health.health_of_subscribers(ids, now=now, step=health.QUARTER)[row.pk],
            "mailbox": mailboxes.mailboxes_of_subscribers(ids, now=now).get(row.pk),
            "base_url": settings.ENVIRONMENT.base_url,
            "may_toggle": may_toggle(request.user),
            "may_unblock": request.user.has_perm("delivery.change_lane"),
        }

    def complete(self, rows: Sequence[Any]) -> None:
        ids, now = [row.pk for row in rows], timezone.now()
        standings = standing_of_subscribers(ids)
        fetched = mailboxes.mailboxes_of_subscribers(ids, now=now)
        healths = health.health_of_subscribers(ids, now=now)
        costs = cost.cost_of_subscribers(ids)
        for row in rows:
            row.health = healths[row.pk]
            row.cost = costs[row.pk]
            row.mailbox = fetched.get(row.pk)
            row.standing = standings[row.pk]

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
        return active_subscriptions(row, "subscriber")

    @admin.display(description="name", ordering="name")
    def named(self, row: Any) -> SafeString:
        return self.status_link(row, row.name)

    @admin.display(description="state")
    def state(self, row: Any) -> SafeString:
        return state_cell(row.standing, now=timezone.now())

    @admin.display(description="actions")
    def toggle(self, row: Any) -> SafeString:
        return row_buttons(row, backlog=row.standing.waiting, cost=row.cost)

    @admin.display(description="last 24 h")
    def day(self, row: Any) -> SafeString:
        return health_cell(row.health)

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> SafeString | str:
        waiting = str(row.standing.waiting)
        if row.mailbox is None:
            return waiting
        return two_lines(waiting, f"{row.mailbox.holds} in the mailbox")
