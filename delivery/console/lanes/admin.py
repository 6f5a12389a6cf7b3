"""Lanes in the console: read-only, except for the actions to restart a stopped lane."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.shared.base import ConsoleAdmin, ReadOnly, actor_of
from delivery.console.shared.input_filters import ChoiceFilter
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.state_cell import state_cell
from delivery.console.shared.times import ago, due
from delivery.models import Lane
from delivery.standing.reading import lanes_in_state, standing_of_lanes
from delivery.standing.vocabulary import IN_TROUBLE, Standing, State
from delivery.states import LaneState
from delivery.support import unblock

_STOPPED = (LaneState.BLOCKED, LaneState.SUSPENDED)


class StateFilter(ChoiceFilter):
    """Keeps the lanes that stand so. Older addresses name the state of a stopped lane's sender."""

    title = "State"
    parameter_name = "state"
    offered = [str(state) for state in State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Lane]) -> QuerySet[Lane]:
        if self.typed() in _STOPPED:
            return queryset.filter(state=self.typed())
        if self.typed() not in list(State):
            return queryset
        return queryset.filter(pk__in=lanes_in_state(State(self.typed())).values("pk"))


@admin.register(Lane)
class LaneAdmin(ReadOnly, CompletedList, ConsoleAdmin):
    empty_text = "Each subscriber has a lane from the moment it is created."
    list_display = [
        "lane_name",
        "lane_state",
        "since_when",
        "waiting",
        "cause",
        "head",
        "next_try",
        "buttons",
    ]
    button_columns = ("buttons",)
    list_display_links = None
    list_filter = [StateFilter]
    list_select_related = ["subscriber"]
    search_fields = ["subscriber__name"]
    search_help_text = "Search by subscriber"
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Lane]:
        # Stopped lanes first: people open this page because of them.
        stopped = Case(When(state__in=_STOPPED, then=Value(0)), default=Value(1))
        rows: QuerySet[Lane] = Lane.objects.defer("run_ids", "run_attempts")
        return rows.order_by(stopped, "subscriber__name", "kind", "number")

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))

        return [
            path("<int:object_id>/retry/", posted(self.retry), name="delivery_lane_retry"),
            path(
                "<int:object_id>/skip/<int:delivery_id>/",
                posted(self.skip),
                name="delivery_lane_skip",
            ),
            path("<int:object_id>/resume/", posted(self.resume), name="delivery_lane_resume"),
            *super().get_urls(),
        ]

    def retry(self, request: HttpRequest, object_id: int) -> HttpResponse:
        lane: Lane = self.permitted(request, object_id)
        try:
            unblock.retry_head(lane, actor=actor_of(request))
        except unblock.SuspendedError:
            text = f"Nothing was done: {lane} was suspended meanwhile. Resume it."
            return self.back(request, text, level=messages.WARNING)
        except unblock.NotBlockedError:
            return self._too_late(request, lane)
        return self.back(request, f"{lane} retries now.")

    def skip(self, request: HttpRequest, object_id: int, delivery_id: int) -> HttpResponse:
        """Skip the shown delivery, never another, become the head since."""
        lane: Lane = self.permitted(request, object_id)
        try:
            skipped = unblock.skip_delivery(lane, actor=actor_of(request), expected=delivery_id)
        except unblock.NotBlockedError:
            return self._too_late(request, lane)
        if skipped is None:
            return self.back(
                request, f"Delivery {delivery_id} was settled already; {lane} is resumed."
            )
        return self.back(
            request,
            f"Skipped: delivery {delivery_id} is CANCELLED; {lane} continues with the next.",
        )

    def resume(self, request: HttpRequest, object_id: int) -> HttpResponse:
        lane: Lane = self.permitted(request, object_id)
        try:
            unblock.resume_lane(lane, actor=actor_of(request))
        except unblock.NotSuspendedError:
            text = f"Nothing was done: {lane} is no longer suspended."
            return self.back(request, text, level=messages.WARNING)
        return self.back(request, f"{lane} is resumed.")

    def _too_late(self, request: HttpRequest, lane: Lane) -> HttpResponse:
        text = f"Nothing was done: {lane} is no longer blocked by that message."
        return self.back(request, text, level=messages.WARNING)

    def complete(self, rows: Sequence[Any]) -> None:
        standings = standing_of_lanes(rows)
        for row in rows:
            row.standing = standings[row.pk]

    @admin.display(description="lane")
    def lane_name(self, row: Lane) -> SafeString | str:
        if row.subscriber is None:
            return str(row)
        url = reverse("admin:subscriptions_subscriber_status", args=[row.subscriber_id])
        return format_html('<a class="inturn-link" href="{}">{}</a>', url, row)

    @admin.display(description="state")
    def lane_state(self, row: Any) -> SafeString:
        return state_cell(row.standing, now=timezone.now())

    @admin.display(description="since")
    def since_when(self, row: Any) -> SafeString | str:
        return ago(row.standing.since, now=timezone.now())

    @admin.display(description="waiting")
    def waiting(self, row: Any) -> str:
        """Return the number of the subscriber's: in the lane, a mailbox, a queue, and retries."""
        return str(row.standing.waiting)

    @admin.display(description="cause")
    def cause(self, row: Any) -> str:
        return row.standing.why or "–"

    @admin.display(description="stopped by")
    def head(self, row: Any) -> SafeString | str:
        if row.standing.state not in IN_TROUBLE or not row.delivery_id or not _is_stopped(row):
            return "–"
        url = reverse("admin:delivery_delivery_change", args=[row.delivery_id])
        return format_html('<a class="inturn-link" href="{}">delivery {}</a>', url, row.delivery_id)

    @admin.display(description="next try")
    def next_try(self, row: Any) -> SafeString | str:
        standing: Standing = row.standing
        if standing.next_try_at is None and standing.state in (State.STOPPED, State.HELD):
            return "waits for a person"
        return due(standing.next_try_at, now=timezone.now())

    @admin.display(description="actions")
    def buttons(self, row: Lane) -> SafeString | str:
        if not _is_stopped(row):
            return ""
        verb, text = (
            ("resume", "Resume") if row.state == LaneState.SUSPENDED else ("retry", "Retry now")
        )
        return format_html(
            (
                '<button type="submit" class="inturn-button" form="console-post" '
                'formaction="{}">{}</button>'
            ),
            reverse(f"admin:delivery_lane_{verb}", args=[row.pk]),
            text,
        )


def _is_stopped(row: Lane) -> bool:
    return row.state in _STOPPED
