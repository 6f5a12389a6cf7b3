"""Subscribers with what waits for them: in their lane, and in their mailbox."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from delivery.admin.completed import CompletedList
from delivery.console import mailboxes, waiting
from delivery.console.labels import label, two_lines
from delivery.models import Lane
from subscriptions.admin.base import id_of
from subscriptions.admin.subscriber import SubscriberAdmin as Base
from subscriptions.models import Subscriber


@admin.register(Subscriber)
class SubscriberAdmin(CompletedList, Base):
    list_display = [
        "name",
        "lane_state",
        "backlog",
        "subscription_count",
        "sent",
        "matched",
        "about",
    ]

    change_form_outer_before_template = "console/subscriber_mailbox.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown = dict(extra_context or {})
        if (subscriber_id := id_of(object_id)) is not None:
            found = mailboxes.of_subscribers([subscriber_id], now=timezone.now())
            shown |= {"mailbox": found.get(subscriber_id), "base_url": settings.ENVIRONMENT.base_url}
        page: HttpResponse = super().change_view(request, object_id, form_url, shown)
        return page

    def complete(self, rows: Sequence[Any]) -> None:
        lanes = {
            lane.subscriber_id: lane
            for lane in Lane.objects.filter(subscriber__in=rows).only("state", "subscriber_id")
        }
        counted = waiting.of_lanes([lane.pk for lane in lanes.values()])
        fetched = mailboxes.of_subscribers([row.pk for row in rows], now=timezone.now())
        for row in rows:
            row.mailbox = fetched.get(row.pk)
            row.shown_lane = lanes.get(row.pk)
            row.waiting = counted.get(row.shown_lane.pk) if row.shown_lane else None

    @admin.display(description="lane")
    def lane_state(self, row: Any) -> SafeString | str:
        return label(row.shown_lane.state) if row.shown_lane else "–"

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> SafeString | str:
        in_lane = str(row.waiting or 0)
        if row.mailbox is None:
            return in_lane
        return two_lines(in_lane, f"{row.mailbox.holds} in the mailbox")
