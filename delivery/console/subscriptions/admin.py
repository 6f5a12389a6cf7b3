"""Subscriptions with their backlog, and the buttons that make them ACTIVE and INACTIVE."""

from collections.abc import Sequence
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from delivery.console.event_types import queue_groups
from delivery.console.health import recent as health
from delivery.console.health.sparkline import health_cell
from delivery.console.lanes import retry_lane, waiting
from delivery.console.shared.labels import label
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.subscribers import mailboxes
from delivery.console.subscriptions.buttons import toggle_buttons
from delivery.console.subscriptions.filter_tester import FilterTester
from delivery.console.subscriptions.trial_page import TestSending
from delivery.models import EndpointState, EndpointSummary
from delivery.support import bulk_jobs, toggle
from delivery.support.toggle import Backlog
from subscriptions.admin.shared.base import FEW_ROWS, actor_of, id_of
from subscriptions.admin.subscriptions.admin import BaseSubscriptionAdmin
from subscriptions.models import Mode, Subscription, SubscriptionStatus


@admin.register(Subscription)
class SubscriptionAdmin(FilterTester, TestSending, CompletedList, BaseSubscriptionAdmin):
    empty_text = "A subscription says which messages of an event type go to which endpoint, or into a mailbox. It needs a subscriber and an event type."
    list_display = ["full_name", "state", "day", "backlog", "toggle", "wants", "goes_to"]
    button_columns = ("toggle",)
    list_per_page = FEW_ROWS
    change_form_outer_before_template = "console/subscription_buttons.html"

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))

        name = "subscriptions_subscription"
        return [
            # Not wrapped in admin_view: a redirect to the login page would be swapped into the page.
            path("<int:object_id>/live/", never_cache(require_GET(self.live)), name=f"{name}_live"),
            path("<int:object_id>/deactivate/", posted(self.deactivate), name=f"{name}_deactivate"),
            path("<int:object_id>/activate/<str:backlog>/", posted(self.activate), name=f"{name}_activate"),
            *super().get_urls(),
        ]

    def may_press(self, request: HttpRequest) -> bool:
        return may_toggle(request.user)

    def _toggled(self, request: HttpRequest, object_id: int) -> Subscription:
        if not may_toggle(request.user):
            raise PermissionDenied
        return get_object_or_404(Subscription, pk=object_id)

    def deactivate(self, request: HttpRequest, object_id: int) -> HttpResponse:
        subscription = self._toggled(request, object_id)
        if not toggle.deactivate(subscription, actor=actor_of(request)):
            return self.back(request, f"{subscription} was INACTIVE already.", level=messages.WARNING)
        undo = reverse("admin:subscriptions_subscription_activate", args=[object_id, "deliver"])
        message = format_html(
            "{} is INACTIVE: its deliveries are held, and messages published from now on are not kept for it. The others flow. "
            '<button type="submit" id="undo" class="inturn-undo" form="console-post" formaction="{}">Undo</button>',
            subscription,
            undo,
        )
        return self.back(request, message)

    def activate(self, request: HttpRequest, object_id: int, backlog: str) -> HttpResponse:
        subscription = self._toggled(request, object_id)
        if backlog not in ("deliver", "cancel"):
            raise BadRequest("The backlog is to deliver or to cancel.")
        job = toggle.activate(subscription, backlog=cast("Backlog", backlog), actor=actor_of(request))
        if job is None:
            kept = "can be fetched" if subscription.mode == Mode.PULL else "is delivered in order"
            return self.back(request, f"{subscription} is ACTIVE again, and what was held {kept}.")
        message = format_html(
            '{} is ACTIVE again: {} held deliveries are being CANCELLED (<a href="{}">{}</a>). What is published from now on '
            "is sent after that.",
            subscription,
            bulk_jobs.counted(job),
            reverse("admin:delivery_resubmission_change", args=[job.pk]),
            job,
        )
        return self.back(request, message)

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
        """Answer what moves on the page; who is logged out meanwhile gets the page reloaded."""
        if not (request.user.is_active and self.has_view_permission(request)):
            return HttpResponse(headers={"HX-Refresh": "true"})
        row = get_object_or_404(
            Subscription.objects.select_related("subscriber").defer("headers", "auth"), pk=object_id
        )
        return render(request, "console/subscription_live_part.html", {"original": row, **_now(object_id)})

    def complete(self, rows: Sequence[Any]) -> None:
        ids = [row.pk for row in rows]
        counted = waiting.of_subscriptions(ids)
        healths = health.of_subscriptions(ids, now=timezone.now())
        for row in rows:
            row.waiting = counted.get(row.pk)
            row.health = healths[row.pk]

    @admin.display(description="status", ordering="status")
    def state(self, row: Subscription) -> SafeString:
        return label(row.status)

    @admin.display(description="last 24 h")
    def day(self, row: Any) -> SafeString:
        return health_cell(row.health)

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> str:
        if not row.waiting:
            return "0"
        return f"{row.waiting} held" if row.status == SubscriptionStatus.INACTIVE else str(row.waiting)

    @admin.display(description="")
    def toggle(self, row: Any) -> SafeString:
        return toggle_buttons(row.pk, is_active=row.status == SubscriptionStatus.ACTIVE, backlog=row.waiting)


def _now(subscription_id: int) -> dict[str, Any]:
    """What moves on the page of a subscription."""
    now = timezone.now()
    ids = [subscription_id]
    return {
        "backlog": waiting.of_subscriptions(ids).get(subscription_id),
        "health": health.of_subscriptions(ids, now=now, step=health.QUARTER)[subscription_id],
        "mailbox": mailboxes.of_subscription(subscription_id, now=now),
        "retries": retry_lane.of_subscription(subscription_id),
        "endpoint": EndpointSummary.objects.filter(pk=subscription_id)
        .exclude(state=EndpointState.UP)
        .first(),
    }
