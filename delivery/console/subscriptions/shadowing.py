"""The status of subscriptions: in the form of a new one, and the button and action for SHADOW."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from delivery.console.holding.admin import HoldingAdmin
from delivery.console.shared.base import actor_of
from delivery.support import toggle
from subscriptions.models import Subscription, SubscriptionStatus


class ShadowingAdmin(HoldingAdmin):
    """The admin of subscriptions: subscribers cannot be SHADOW."""

    actions = ["hold_chosen", "shadow_chosen", "deactivate_chosen", "activate_chosen"]

    def get_fieldsets(self, request: HttpRequest, obj: Subscription | None = None) -> Any:
        """Offer the status of a new subscription; buttons change an existing subscription."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is not None:
            return fieldsets
        (title, options), *others = fieldsets
        return [(title, {**options, "fields": [*options["fields"], "status"]}), *others]

    def save_model(self, request: HttpRequest, obj: Subscription, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change and obj.status == SubscriptionStatus.HELD:
            toggle.record_hold(obj, actor=actor_of(request))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.shadow))
        return [
            path("<int:object_id>/shadow/", view, name="subscriptions_subscription_shadow"),
            *super().get_urls(),
        ]

    def shadow(self, request: HttpRequest, object_id: int) -> HttpResponse:
        subscription = self.toggled(request, object_id)
        before = subscription.status
        if not toggle.shadow_subscription(subscription, actor=actor_of(request)):
            return self.back(request, f"{subscription} was SHADOW already.", level=messages.WARNING)
        text = (
            f"{subscription} is SHADOW: messages match and are recorded, and nothing of it is sent."
        )
        return self.back(request, self.with_undo(subscription, text, to=before))

    @admin.action(description="Make SHADOW: record matches, send nothing", permissions=["toggle"])
    def shadow_chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.change_each(
            request,
            queryset,
            lambda owner: toggle.shadow_subscription(owner, actor=actor_of(request)),
            "SHADOW",
        )
