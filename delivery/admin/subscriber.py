"""Subscribers with the state of their lane and what waits in it."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from delivery.admin.completed import CompletedList
from delivery.console import waiting
from delivery.console.labels import label
from delivery.models import Lane
from subscriptions.admin.subscriber import SubscriberAdmin as Base
from subscriptions.models import Subscriber


@admin.register(Subscriber)
class SubscriberAdmin(CompletedList, Base):
    list_display = [
        "name",
        "lane_state",
        "backlog",
        "subscription_count",
        "processing",
        "match_mode",
        "description",
    ]

    def complete(self, rows: Sequence[Any]) -> None:
        lanes = {
            lane.subscriber_id: lane
            for lane in Lane.objects.filter(subscriber__in=rows).only("state", "subscriber_id")
        }
        counted = waiting.of_lanes([lane.pk for lane in lanes.values()])
        for row in rows:
            row.shown_lane = lanes.get(row.pk)
            row.waiting = counted.get(row.shown_lane.pk) if row.shown_lane else None

    @admin.display(description="lane")
    def lane_state(self, row: Any) -> SafeString | str:
        return label(row.shown_lane.state) if row.shown_lane else "–"

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> str:
        return str(row.waiting or 0)
