"""Subscribers in the console, with their health and their backlogs in lane and mailbox."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from delivery.console.health import recent as health
from delivery.console.health.sparkline import health_cell
from delivery.console.holding import cost
from delivery.console.holding.admin import HoldingAdmin
from delivery.console.lanes import waiting_counts
from delivery.console.shared.labels import label, two_lines
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.status_page import StatusAdmin
from delivery.console.subscribers import mailboxes
from delivery.console.subscribers.status import read_subscriber
from delivery.console.subscriptions.buttons import row_buttons
from delivery.models import Lane
from subscriptions.admin.applications.subscriber import BaseSubscriberAdmin
from subscriptions.admin.shared.base import FEW_ROWS
from subscriptions.models import Subscriber, SubscriptionStatus


@admin.register(Subscriber)
class SubscriberAdmin(StatusAdmin, HoldingAdmin, CompletedList, BaseSubscriberAdmin):
    list_display = [
        "named",
        "lane_state",
        "day",
        "backlog",
        "subscription_count",
        "sent",
        "about",
        "toggle",
    ]
    button_columns = ("toggle",)
    # The last day's figures of a subscriber cost time for each of its subscriptions.
    list_per_page = FEW_ROWS
    status_template = "console/subscriber_status.html"
    live_template = "console/subscriber_status_part.html"

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
        lanes = {
            lane.subscriber_id: lane
            for lane in Lane.objects.filter(subscriber__in=rows).only("state", "subscriber_id")
        }
        counted = waiting_counts.waiting_of_lanes([lane.pk for lane in lanes.values()])
        ids, now = [row.pk for row in rows], timezone.now()
        fetched = mailboxes.mailboxes_of_subscribers(ids, now=now)
        healths = health.health_of_subscribers(ids, now=now)
        costs = cost.cost_of_subscribers(ids)
        for row in rows:
            row.health = healths[row.pk]
            row.cost = costs[row.pk]
            row.mailbox = fetched.get(row.pk)
            row.shown_lane = lanes.get(row.pk)
            row.waiting = counted.get(row.shown_lane.pk) if row.shown_lane else None

    @admin.display(description="name", ordering="name")
    def named(self, row: Any) -> SafeString:
        return self.status_link(row, row.name)

    @admin.display(description="state")
    def lane_state(self, row: Any) -> SafeString | str:
        if row.status != SubscriptionStatus.ACTIVE:
            return label(row.status)
        return label(row.shown_lane.state) if row.shown_lane else "–"

    @admin.display(description="actions")
    def toggle(self, row: Any) -> SafeString:
        return row_buttons(row, backlog=row.waiting, cost=row.cost)

    @admin.display(description="last 24 h")
    def day(self, row: Any) -> SafeString:
        return health_cell(row.health)

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> SafeString | str:
        in_lane = str(row.waiting or 0)
        if row.mailbox is None:
            return in_lane
        return two_lines(in_lane, f"{row.mailbox.holds} in the mailbox")
