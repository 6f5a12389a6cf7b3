"""Subscriptions with their backlog, and the buttons that make them ACTIVE and INACTIVE."""

from collections.abc import Sequence
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery import toggle
from delivery.admin.completed import CompletedList
from delivery.console import mailboxes, retry_lane, url_health, waiting
from delivery.console.buttons import toggle_buttons
from delivery.console.labels import label
from delivery.toggle import Backlog
from subscriptions.admin.base import actor_of, id_of
from subscriptions.admin.subscription import SubscriptionAdmin as Base
from subscriptions.models import Mode, Subscription, SubscriptionStatus


@admin.register(Subscription)
class SubscriptionAdmin(CompletedList, Base):
    empty_text = "A subscription says which messages of an event type go to which endpoint, or into a mailbox. It needs a subscriber and an event type."
    list_display = ["full_name", "state", "backlog", "toggle", "wants", "goes_to"]
    button_columns = ("toggle",)
    change_form_outer_before_template = "console/subscription_buttons.html"

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))

        name = "subscriptions_subscription"
        return [
            path("<int:object_id>/deactivate/", posted(self.deactivate), name=f"{name}_deactivate"),
            path("<int:object_id>/activate/<str:backlog>/", posted(self.activate), name=f"{name}_activate"),
            *super().get_urls(),
        ]

    def deactivate(self, request: HttpRequest, object_id: int) -> HttpResponse:
        subscription: Subscription = self.permitted(request, object_id)
        if not toggle.deactivate(subscription, actor=actor_of(request)):
            return self.back(request, f"{subscription} was INACTIVE already.", level=messages.WARNING)
        undo = reverse("admin:subscriptions_subscription_activate", args=[object_id, "deliver"])
        message = format_html(
            "{} is INACTIVE: its messages are held, the others flow. "
            '<button type="submit" id="undo" class="inturn-undo" form="console-post" formaction="{}">Undo</button>',
            subscription,
            undo,
        )
        return self.back(request, message)

    def activate(self, request: HttpRequest, object_id: int, backlog: str) -> HttpResponse:
        subscription: Subscription = self.permitted(request, object_id)
        if backlog not in ("deliver", "cancel"):
            raise BadRequest("The backlog is to deliver or to cancel.")
        cancelled = toggle.activate(subscription, backlog=cast("Backlog", backlog), actor=actor_of(request))
        kept = "can be fetched" if subscription.mode == Mode.PULL else "is delivered in order"
        fate = (
            f": {cancelled:,} held deliveries are CANCELLED" if cancelled else f", and what was held {kept}"
        )
        return self.back(request, f"{subscription} is ACTIVE again{fate}.")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown = dict(extra_context or {})
        if (subscription_id := id_of(object_id)) is not None:
            shown |= {
                "backlog": waiting.of_subscriptions([subscription_id]).get(subscription_id),
                "mailbox": mailboxes.of_subscription(subscription_id, now=timezone.now()),
                "retries": retry_lane.of_subscription(subscription_id),
                "stopped_url": url_health.stopping(subscription_id),
            }
        page: HttpResponse = super().change_view(request, object_id, form_url, shown)
        return page

    def complete(self, rows: Sequence[Any]) -> None:
        counted = waiting.of_subscriptions([row.pk for row in rows])
        for row in rows:
            row.waiting = counted.get(row.pk)

    @admin.display(description="status", ordering="status")
    def state(self, row: Subscription) -> SafeString:
        return label(row.status)

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> str:
        if not row.waiting:
            return "0"
        return f"{row.waiting} held" if row.status == SubscriptionStatus.INACTIVE else str(row.waiting)

    @admin.display(description="")
    def toggle(self, row: Any) -> SafeString:
        return toggle_buttons(row.pk, is_active=row.status == SubscriptionStatus.ACTIVE, backlog=row.waiting)
