"""Subscriptions in the console, with their backlog and the buttons that change their status."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from delivery.console.event_types import queue_groups
from delivery.console.health import recent as health
from delivery.console.health.sparkline import health_cell
from delivery.console.holding import cost
from delivery.console.holding.admin import HoldingAdmin
from delivery.console.lanes import retry_lane, waiting_counts
from delivery.console.shared.labels import label
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.subscribers import mailboxes
from delivery.console.subscriptions.buttons import toggle_buttons
from delivery.console.subscriptions.filter_tester import FilterTester
from delivery.console.subscriptions.script_tester import ScriptTester
from delivery.console.subscriptions.trial_page import TestSending
from delivery.models import EndpointState, EndpointSummary
from subscriptions.admin.shared.base import FEW_ROWS, id_of
from subscriptions.admin.subscriptions.admin import BaseSubscriptionAdmin
from subscriptions.models import Subscription


@admin.register(Subscription)
class SubscriptionAdmin(
    FilterTester, ScriptTester, TestSending, HoldingAdmin, CompletedList, BaseSubscriptionAdmin
):
    empty_text = "A subscription routes messages of an event type to an endpoint or into a mailbox. It needs a subscriber and an event type."
    list_display = ["full_name", "state", "day", "backlog", "toggle", "wants", "goes_to"]
    button_columns = ("toggle",)
    list_per_page = FEW_ROWS
    change_form_outer_before_template = "console/subscription_buttons.html"

    class Media:
        js = ["console/script_editor.js"]

    def get_urls(self) -> list[URLPattern]:
        name = "subscriptions_subscription"
        return [
            # Not wrapped in admin_view: a redirect to the login page would be swapped into the page.
            path("<int:object_id>/live/", never_cache(require_GET(self.live)), name=f"{name}_live"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown = dict(extra_context or {})
        if (subscription_id := id_of(object_id)) is not None:
            shown |= {"may_toggle": may_toggle(request.user), **_now(subscription_id)}
            row = (
                Subscription.objects.select_related("event_type")
                .defer("headers", "auth")
                .filter(pk=subscription_id)
                .first()
            )
            shown["group_size"] = None if row is None else queue_groups.group_size(row)
        page: HttpResponse = super().change_view(request, object_id, form_url, shown)
        return page

    def live(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Return the live part of the page.

        A user who was signed out meanwhile gets the page reloaded.
        """
        if not (request.user.is_active and self.has_view_permission(request)):
            return HttpResponse(headers={"HX-Refresh": "true"})
        row = get_object_or_404(
            Subscription.objects.select_related("subscriber").defer("headers", "auth"), pk=object_id
        )
        return render(request, "console/subscription_live_part.html", {"original": row, **_now(object_id)})

    def complete(self, rows: Sequence[Any]) -> None:
        ids = [row.pk for row in rows]
        counted = waiting_counts.of_subscriptions(ids)
        healths = health.of_subscriptions(ids, now=timezone.now())
        for row in rows:
            row.waiting = counted.get(row.pk)
            row.health = healths[row.pk]
            # Uses counts that are loaded already, so it adds no query to the page.
            row.cost = cost.in_words(row.health.settled, 24)

    @admin.display(description="status", ordering="status")
    def state(self, row: Subscription) -> SafeString:
        owner = row.held_by
        if owner is None or owner == row:
            return label(row.status)
        return format_html(
            '<span class="inturn-lines">{}<span class="inturn-second">{} is {}</span></span>',
            label(row.status),
            owner,
            owner.status,
        )

    @admin.display(description="last 24 h")
    def day(self, row: Any) -> SafeString:
        return health_cell(row.health)

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> str:
        if not row.waiting:
            return "0"
        return f"{row.waiting} held" if row.held_by is not None else str(row.waiting)

    @admin.display(description="")
    def toggle(self, row: Any) -> SafeString:
        return toggle_buttons(row, backlog=row.waiting, cost=row.cost)


def _now(subscription_id: int) -> dict[str, Any]:
    """Return the live values of a subscription's page."""
    now = timezone.now()
    ids = [subscription_id]
    return {
        "backlog": waiting_counts.of_subscriptions(ids).get(subscription_id),
        "cost": cost.of_subscriptions(ids)[subscription_id],
        "health": health.of_subscriptions(ids, now=now, step=health.QUARTER)[subscription_id],
        "mailbox": mailboxes.of_subscription(subscription_id, now=now),
        "retries": retry_lane.of_subscription(subscription_id),
        "endpoint": EndpointSummary.objects.filter(pk=subscription_id)
        .exclude(state=EndpointState.UP)
        .first(),
    }
