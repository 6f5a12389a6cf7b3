"""Deliveries in the console, for support: a list with filters, and a page with every attempt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.bulk_jobs.admin import bulk_url
from delivery.console.deliveries.actions import Resubmitting
from delivery.console.messages import curl, next_try
from delivery.console.messages.as_sent import script_output
from delivery.console.messages.next_try import NextTry
from delivery.console.messages.page import trace_of
from delivery.console.messages.shown_deliveries import attempts_of, place_of, with_attempts
from delivery.console.messages.trace_rows import read_trace_rows
from delivery.console.shared.addresses import address_for
from delivery.console.shared.base import id_of
from delivery.console.shared.cells import two_lines_of
from delivery.console.shared.input_filters import age_of
from delivery.console.shared.labels import label, two_lines
from delivery.console.shared.list_filters import (
    DeliveryEventTypeFilter,
    DeliveryPublishedSince,
    DeliveryPublishedUntil,
    DeliveryStatusFilter,
    DeliverySubscriberFilter,
    DeliveryTabFilter,
    IncidentFilter,
    OfMessageFilter,
    ReplayFilter,
    SubscriptionFilter,
)
from delivery.console.shared.list_with_pane import SplitAdmin
from delivery.console.shared.live import LiveAdmin
from delivery.console.shared.rights import journal_url, reads_journal
from delivery.console.shared.tabs import Tab, TabbedAdmin, narrow, statuses_of
from delivery.console.shared.times import ago, clock, due
from delivery.models import Delivery, LaneKind
from delivery.models.delivery import ids_of_message
from delivery.models.message import public_id
from delivery.states import OPEN, Status
from delivery.support.payload import Payload, log_view, may_see_payload, payload_of
from delivery.support.resubmit import possible
from delivery.support.selection import OFFERED

# Only the newest are shown: a delivery may have been tried for weeks.
SHOWN_ATTEMPTS = 200
_UNSHOWN = ["message__body", "message__headers", "subscription__headers", "subscription__auth"]
_RELATIONS = (
    "message__event_type",
    "subscription__subscriber",
    "subscription__policy",
    "lane__subscriber",
)
_PAGE_RELATIONS = ("message__publisher", "callback", "replay", "script_output")


@admin.register(Delivery)
class DeliveryAdmin(Resubmitting, LiveAdmin, TabbedAdmin, SplitAdmin):
    empty_text = "A published message gets a delivery for each matching subscription."
    list_display = ["delivery_id", "state", "message_link", "subscription", "tried", "why", "when"]
    list_filter = [
        DeliveryStatusFilter,
        DeliverySubscriberFilter,
        SubscriptionFilter,
        DeliveryEventTypeFilter,
        OfMessageFilter,
        DeliveryPublishedSince,
        DeliveryPublishedUntil,
        ReplayFilter,
        DeliveryTabFilter,
        IncidentFilter,
    ]
    list_select_related = list(_RELATIONS)
    search_fields = ["id"]
    search_help_text = "Search by the id of a delivery or a message, e.g. 1234 or msg_1234"
    list_before_template = "console/deliveries/resubmit_all.html"
    pane_template = "console/deliveries/delivery.html"

    def leaves_few(self, params: Mapping[str, Any]) -> bool:
        """Return whether the filters leave few rows.

        The deliveries of a subscription and the open ones have indexes with the ids:
        delivery_of_subscription, delivery_pending and delivery_leased.
        """
        names = ("subscriber", "subscription", "event_type", "incident")
        return any(params.get(name) for name in names) or params.get("status") in OPEN

    def parts(self, rows: QuerySet[Any], params: Mapping[str, Any]) -> Sequence[QuerySet[Any]]:
        """Return the rows by status: the index of failures has a separate order of ids for each."""
        statuses = statuses_of(params)
        if len(statuses) < 2 or set(statuses) <= set(OPEN) or self.leaves_few(params):
            return [rows]
        return [rows.filter(status=status) for status in statuses]

    def counted(self, rows: QuerySet[Any], tab: Tab) -> QuerySet[Any]:
        return narrow(rows, tab.statuses).values("pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        rows: QuerySet[Delivery] = super().get_queryset(request)
        return rows.select_related(*self.list_select_related).defer(*_UNSHOWN)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Delivery], search_term: str
    ) -> tuple[QuerySet[Delivery], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        id = id_of(term.removeprefix("msg_")) or 0
        if term.startswith("msg_"):
            # There is no index by message: the deliveries are a range of primary keys.
            return queryset.filter(pk__range=ids_of_message(id)), False
        return queryset.filter(pk=id), False

    def pane_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        may_see = may_see_payload(request.user)
        rows = Delivery.objects.select_related(*_RELATIONS, *_PAGE_RELATIONS)
        # The curl command contains the body.
        rows = (
            rows.defer("message__headers")
            if may_see
            else rows.defer("message__headers", "message__body")
        )
        delivery = get_object_or_404(rows, pk=id_of(object_id) or 0)
        if not self.has_view_permission(request, delivery):
            raise PermissionDenied
        (shown,) = with_attempts([delivery], limit=SHOWN_ATTEMPTS, may_see=may_see)
        if may_see:
            log_view(request.user, delivery.message_id)
        trace_rows = read_trace_rows(
            delivery.message,
            [delivery],
            now=timezone.now(),
            reads_journal=reads_journal(request.user),
        )
        return {
            "opened": delivery,
            "shown": shown,
            "trace": trace_of(delivery.message, [shown], trace_rows),
            "upcoming": [shown],
            "journal_url": journal_url(request.user, delivery=delivery.pk),
            "body": payload_of(bytes(delivery.message.body)) if may_see else None,
            "made": _made(delivery) if may_see else None,
            "sending": address_for(request.user, curl.send_command(delivery))
            if may_see and not shown.is_fetched
            else "",
            "possible": possible(delivery),
            "may_change": self.may_change_rows(request),
            "may_edit": self.may_edit(request),
            "may_see_payload": may_see,
        }

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        title = f"Delivery {object_id}"
        return self.page(request, object_id, title=title, template="console/deliveries/page.html")

    def complete(self, rows: Sequence[Any]) -> None:
        next_tries = next_try.next_tries(rows)
        for row in rows:
            row.next_try = next_tries.get(row.pk)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list, with links to resubmit or cancel all deliveries within the filters."""
        shown = dict(extra_context or {})
        if request.user.has_perm("delivery.add_resubmission"):
            wanted = set(statuses_of(request.GET))
            for verb, statuses in OFFERED.items():
                if not wanted or wanted & set(statuses):
                    shown[f"{verb.label}_all"] = bulk_url(_as_status(request.GET), verb)
            shown["cancels_settled"] = Status.IN_DOUBT in wanted
        page: HttpResponse = super().changelist_view(request, shown)
        return page

    @admin.display(description="delivery")
    def delivery_id(self, row: Delivery) -> SafeString:
        return self.opening(row, str(row.pk))

    @admin.display(description="status")
    def state(self, row: Delivery) -> SafeString:
        is_held = row.status == Status.PENDING and row.subscription.held_by is not None
        return format_html("{} {}", label(row.status), label("held") if is_held else "")

    @admin.display(description="message")
    def message_link(self, row: Delivery) -> SafeString:
        url = reverse("admin:delivery_message_change", args=[row.message_id])
        return format_html(
            (
                '<span class="inturn-lines"><a class="inturn-link" href="{}">{}</a>'
                '<span class="inturn-second">{}</span></span>'
            ),
            url,
            public_id(row.message_id),
            row.message.event_type.name,
        )

    @admin.display(description="reason")
    def why(self, row: Delivery) -> SafeString | None:
        return two_lines_of(row.reason)

    @admin.display(description="attempts")
    def tried(self, row: Delivery) -> SafeString | str:
        count = attempts_of(row)
        if place := place_of(row, now=timezone.now()):
            return two_lines(count, _where(row, place))
        if row.status != Status.PENDING or row.lane is None or row.lane.kind != LaneKind.RETRY:
            return count
        return two_lines(count, "in the retry lane")

    @admin.display(description="published")
    def when(self, row: Any) -> SafeString | str:
        now = timezone.now()
        published = ago(row.message.published_at, now=now)
        if row.settled_at:
            return two_lines(published, format_html("settled {}", ago(row.settled_at, now=now)))
        if place_of(row, now=now) == "LATER":
            return two_lines(
                published, format_html("can be fetched {}", due(row.next_attempt_at, now=now))
            )
        if row.next_try is None or row.next_try.is_usual:
            return published
        return two_lines(published, _next(row.next_try, now=now))


def _as_status(params: QueryDict) -> QueryDict:
    """Name the status behind a tab, and the present time of an age.

    Without a status, a bulk job takes failed or open deliveries.
    """
    named = params.copy()
    statuses = statuses_of(params)
    if len(statuses) == 1:
        named["status"] = statuses[0].value
    for name in ("since", "until"):
        if (age := age_of(params.get(name, ""))) is not None:
            named[name] = f"{timezone.now() - age:%Y-%m-%dT%H:%M:%S}"
    return named


def _next(next_try: NextTry, *, now: datetime) -> SafeString | str:
    if next_try.at is None:
        return format_html('<span title="{}">{}</span>', next_try.words, next_try.words)
    return format_html(
        '<span title="{}">next try {}</span>', next_try.words, due(next_try.at, now=now)
    )


def _where(row: Delivery, place: str) -> SafeString | str:
    if place == "LEASED" and row.lease_expires_at:
        return format_html("leased until {}", clock(row.lease_expires_at))
    return "not acknowledged" if place == "LAPSED" else "in the mailbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOutput:
    """The output of a script for a delivery; without a `body` the message's own body is sent."""

    version: int
    body: Payload | None
    headers: Mapping[str, str]
    path: str


def _made(delivery: Delivery) -> ShownOutput | None:
    made = script_output(delivery)
    if made is None:
        return None
    body = None if made.body is None else payload_of(bytes(made.body))
    return ShownOutput(version=made.script_version, body=body, headers=made.headers, path=made.path)
