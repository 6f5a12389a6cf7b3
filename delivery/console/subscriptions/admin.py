"""Subscriptions in the console, with their backlog and the buttons that change their status."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.event_types import queue_groups
from delivery.console.health import recent as health
from delivery.console.health.sparkline import health_cell
from delivery.console.holding import cost
from delivery.console.lanes import retry_lane, waiting_counts
from delivery.console.shared.labels import label
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.status_page import StatusAdmin
from delivery.console.subscribers import mailboxes
from delivery.console.subscriptions.buttons import row_buttons
from delivery.console.subscriptions.filter_tester import FilterTester
from delivery.console.subscriptions.script_tester import ScriptTester
from delivery.console.subscriptions.shadowing import ShadowingAdmin
from delivery.console.subscriptions.status import read_subscription
from delivery.console.subscriptions.trial_page import TestSending
from delivery.models import EndpointState, EndpointSummary
from subscriptions.admin.shared.base import FEW_ROWS
from subscriptions.admin.subscriptions.admin import BaseSubscriptionAdmin
from subscriptions.admin.subscriptions.secrets import valid_secrets
from subscriptions.models import Subscription


@admin.register(Subscription)
class SubscriptionAdmin(
    FilterTester,
    ScriptTester,
    TestSending,
    StatusAdmin,
    ShadowingAdmin,
    CompletedList,
    BaseSubscriptionAdmin,
):
    empty_text = (
        "A subscription routes messages of an event type to an endpoint or into a mailbox. "
        "It needs a subscriber and an event type."
    )
    list_display = ["full_name", "state", "wants", "goes_to", "day", "backlog", "toggle"]
    button_columns = ("toggle",)
    list_per_page = FEW_ROWS
    status_template = "console/subscription_status.html"
    live_template = "console/subscription_status_part.html"

    class Media:
        js = ["console/script_editor.js"]

    def status_rows(self) -> QuerySet[Subscription]:
        return Subscription.objects.select_related("subscriber", "event_type", "policy").defer(
            "headers", "auth"
        )

    def status_values(self, row: Subscription, request: HttpRequest) -> dict[str, Any]:
        now, ids = timezone.now(), [row.pk]
        return {
            "status": read_subscription(row),
            "backlog": waiting_counts.waiting_of_subscriptions(ids).get(row.pk),
            "cost": cost.cost_of_subscriptions(ids)[row.pk],
            "health": health.health_of_subscriptions(ids, now=now, step=health.QUARTER)[row.pk],
            "mailbox": mailboxes.mailbox_of_subscription(row.pk, now=now),
            "retries": retry_lane.retries_of_subscription(row.pk),
            "endpoint": EndpointSummary.objects.filter(pk=row.pk)
            .exclude(state=EndpointState.UP)
            .first(),
            "group_size": queue_groups.group_size(row),
            "secrets": valid_secrets(
                row.pk, now=now, shows_characters=self.may_change_rows(request)
            ),
            "may_toggle": may_toggle(request.user),
            "may_unblock": request.user.has_perm("delivery.change_lane"),
        }

    def complete(self, rows: Sequence[Any]) -> None:
        ids = [row.pk for row in rows]
        counted = waiting_counts.waiting_of_subscriptions(ids)
        healths = health.health_of_subscriptions(ids, now=timezone.now())
        costs = cost.cost_of_subscriptions(ids)
        for row in rows:
            row.waiting = counted.get(row.pk)
            row.health = healths[row.pk]
            row.cost = costs[row.pk]

    @admin.display(description="subscription", ordering="subscriber__name")
    def full_name(self, row: Subscription) -> SafeString:
        return self.status_link(row, str(row))

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

    @admin.display(description="actions")
    def toggle(self, row: Any) -> SafeString:
        return row_buttons(row, backlog=row.waiting, cost=row.cost)
