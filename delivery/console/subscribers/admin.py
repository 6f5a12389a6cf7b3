"""Subscribers in the console, with their health and their backlogs in lane and mailbox."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from delivery.console.health import recent as health
from delivery.console.health.sparkline import health_cell
from delivery.console.holding import cost
from delivery.console.holding.admin import HoldingAdmin
from delivery.console.lanes import waiting_counts
from delivery.console.shared.labels import label, two_lines
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.subscribers import mailboxes
from delivery.console.subscriptions.buttons import toggle_buttons
from delivery.models import Lane
from subscriptions.admin.applications.subscriber import BaseSubscriberAdmin
from subscriptions.admin.shared.base import FEW_ROWS, id_of
from subscriptions.models import Subscriber, SubscriptionStatus


@admin.register(Subscriber)
class SubscriberAdmin(HoldingAdmin, CompletedList, BaseSubscriberAdmin):
    list_display = [
        "name",
        "lane_state",
        "day",
        "backlog",
        "toggle",
        "subscription_count",
        "sent",
        "matched",
        "about",
    ]
    button_columns = ("toggle",)
    # The last day's figures of a subscriber cost time for each of its subscriptions.
    list_per_page = FEW_ROWS
    change_form_outer_before_template = "console/subscriber_mailbox.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown = dict(extra_context or {})
        if (subscriber_id := id_of(object_id)) is not None:
            shown |= {"may_toggle": may_toggle(request.user), **_now(subscriber_id)}
        page: HttpResponse = super().change_view(request, object_id, form_url, shown)
        return page

    def get_urls(self) -> list[URLPattern]:
        # Not wrapped in admin_view: a redirect to the login page would be swapped into the page.
        live = path(
            "<int:object_id>/live/", never_cache(require_GET(self.live)), name="subscriptions_subscriber_live"
        )
        return [live, *super().get_urls()]

    def live(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Return the live part of the page.

        A user who was signed out meanwhile gets the page reloaded.
        """
        if not (request.user.is_active and self.has_view_permission(request)):
            return HttpResponse(headers={"HX-Refresh": "true"})
        row = get_object_or_404(Subscriber, pk=object_id)
        return render(request, "console/subscriber_live.html", {"original": row, **_now(object_id)})

    def complete(self, rows: Sequence[Any]) -> None:
        lanes = {
            lane.subscriber_id: lane
            for lane in Lane.objects.filter(subscriber__in=rows).only("state", "subscriber_id")
        }
        counted = waiting_counts.of_lanes([lane.pk for lane in lanes.values()])
        ids, now = [row.pk for row in rows], timezone.now()
        fetched = mailboxes.of_subscribers(ids, now=now)
        healths = health.of_subscribers(ids, now=now)
        for row in rows:
            row.health = healths[row.pk]
            row.cost = cost.in_words(row.health.settled, 24)
            row.mailbox = fetched.get(row.pk)
            row.shown_lane = lanes.get(row.pk)
            row.waiting = counted.get(row.shown_lane.pk) if row.shown_lane else None

    @admin.display(description="state")
    def lane_state(self, row: Any) -> SafeString | str:
        if row.status != SubscriptionStatus.ACTIVE:
            return label(row.status)
        return label(row.shown_lane.state) if row.shown_lane else "–"

    @admin.display(description="")
    def toggle(self, row: Any) -> SafeString:
        return toggle_buttons(row, backlog=row.waiting, cost=row.cost)

    @admin.display(description="last 24 h")
    def day(self, row: Any) -> SafeString:
        return health_cell(row.health)

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> SafeString | str:
        in_lane = str(row.waiting or 0)
        if row.mailbox is None:
            return in_lane
        return two_lines(in_lane, f"{row.mailbox.holds} in the mailbox")


def _now(subscriber_id: int) -> dict[str, Any]:
    """Return the live values of a subscriber's page, and the base URL of its mailbox."""
    now = timezone.now()
    lanes = waiting_counts.of_lanes(
        list(Lane.objects.filter(subscriber=subscriber_id).values_list("pk", flat=True))
    )
    return {
        "backlog": next(iter(lanes.values()), None),
        "cost": cost.of_subscribers([subscriber_id])[subscriber_id],
        "health": health.of_subscribers([subscriber_id], now=now, step=health.QUARTER)[subscriber_id],
        "mailbox": mailboxes.of_subscribers([subscriber_id], now=now).get(subscriber_id),
        "base_url": settings.ENVIRONMENT.base_url,
    }
