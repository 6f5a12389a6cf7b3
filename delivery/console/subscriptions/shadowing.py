"""The button and the action that make subscriptions SHADOW."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from delivery.console.holding.admin import HoldingAdmin
from delivery.support import toggle
from subscriptions.admin.shared.base import actor_of


class ShadowingAdmin(HoldingAdmin):
    """The admin of subscriptions: subscribers cannot be SHADOW."""

    actions = ["hold_chosen", "shadow_chosen", "deactivate_chosen", "activate_chosen"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.shadow))
        return [
            path("<int:object_id>/shadow/", view, name="subscriptions_subscription_shadow"),
            *super().get_urls(),
        ]

    def shadow(self, request: HttpRequest, object_id: int) -> HttpResponse:
        subscription = self.toggled(request, object_id)
        before = subscription.status
        if not toggle.shadow(subscription, actor=actor_of(request)):
            return self.back(request, f"{subscription} was SHADOW already.", level=messages.WARNING)
        told = f"{subscription} is SHADOW: messages match and are recorded, and nothing of it is sent."
        return self.back(request, self.with_undo(subscription, told, to=before))

    @admin.action(description="Make SHADOW: record matches, send nothing", permissions=["toggle"])
    def shadow_chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.change_each(
            request, queryset, lambda owner: toggle.shadow(owner, actor=actor_of(request)), "SHADOW"
        )
