"""The lists and the page of the messages of a developer's publishers."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.messages.message_list import MessageListAdmin
from delivery.console.messages.search import (
    BodyFilter,
    HeaderFilter,
    SearchedStatusFilter,
)
from delivery.console.own.page import read_own_page
from delivery.console.shared.base import id_of
from delivery.console.shared.input_filters import ExactText
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.labels import label, two_lines
from delivery.console.shared.list_filters import (
    DeliveryPublishedSince,
    DeliveryPublishedUntil,
    DeliveryStatusFilter,
    OfMessageFilter,
    PublishedSince,
    PublishedUntil,
)
from delivery.console.shared.times import ago
from delivery.database.queries import TimeUpError, statement_time_limit
from delivery.models import OwnDelivery, OwnMessage
from delivery.models.message import parse_public_id, public_id
from delivery.models.reach import deliveries_within, messages_within
from delivery.support.payload import log_view, may_see_payload
from subscriptions.models import EventType
from subscriptions.reach import reach_of_user

# The search ends after this time: with few messages among many of others it would take longer.
LONGEST_SECONDS = 10
_TOO_WIDE = (
    "The deliveries were not found within 10 seconds. Choose a time with Published since, or open "
    "a message: its page shows its deliveries."
)


class OwnEventTypeFilter(ExactText):
    """Filter by the name of an event type, without suggesting any."""

    title = "Event type"
    parameter_name = "event_type"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        found = EventType.objects.filter(name=self.typed()).values_list("pk", flat=True)
        return queryset.filter(event_type__in=list(found))


@admin.register(OwnMessage)
class OwnMessageAdmin(MessageListAdmin):
    empty_text = (
        "Messages appear here as your publishers POST them to /api/v1/events/<event type>/messages."
    )
    list_filter = [
        OwnEventTypeFilter,
        SearchedStatusFilter,
        PublishedSince,
        PublishedUntil,
        HeaderFilter,
        BodyFilter,
    ]
    list_display_links = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return messages_within(super().get_queryset(request), reach_of_user(request.user))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = messages_within(OwnMessage.objects.all(), reach_of_user(request.user))
        message = get_object_or_404(
            rows.select_related("event_type", "publisher"), pk=parse_public_id(object_id) or 0
        )
        may_see = may_see_payload(request.user)
        if may_see:
            log_view(request.user, message.pk)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": message,
            "title": message.public_id,
            "page": read_own_page(message, may_see=may_see),
            "may_see_payload": may_see,
        }
        return TemplateResponse(request, "console/own/message.html", context)

    @admin.display(description="message")
    def message_id(self, row: OwnMessage) -> SafeString:
        return link_to_own(row.pk)

    @admin.display(description="published")
    def published(self, row: OwnMessage) -> SafeString | str:
        return ago(row.published_at, now=timezone.now())


@admin.register(OwnDelivery)
class OwnDeliveryAdmin(KeysetAdmin):
    empty_text = "A published message gets a delivery for each matching subscription."
    list_display = ["message_link", "state", "subscription", "tried", "published"]
    list_display_links = None
    list_filter = [
        DeliveryStatusFilter,
        OfMessageFilter,
        DeliveryPublishedSince,
        DeliveryPublishedUntil,
    ]
    list_select_related = ["message__event_type", "subscription__subscriber"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = deliveries_within(super().get_queryset(request), reach_of_user(request.user))
        return rows.defer(
            "message__body",
            "message__headers",
            "subscription__headers",
            "subscription__auth",
        )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list; the messages instead if the rows are not found in time."""
        try:
            with statement_time_limit(LONGEST_SECONDS):
                return super().changelist_view(request, extra_context)
        except TimeUpError:
            self.message_user(request, _TOO_WIDE, messages.WARNING)
            return HttpResponseRedirect(reverse("admin:delivery_ownmessage_changelist"))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Redirect to the message, whose page has all deliveries."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = deliveries_within(OwnDelivery.objects.all(), reach_of_user(request.user))
        row = get_object_or_404(rows.only("message_id"), pk=id_of(object_id) or 0)
        return HttpResponseRedirect(
            reverse("admin:delivery_ownmessage_change", args=[row.message_id])
        )

    @admin.display(description="message")
    def message_link(self, row: OwnDelivery) -> SafeString:
        return two_lines_with_link(row)

    @admin.display(description="status")
    def state(self, row: OwnDelivery) -> SafeString:
        return label(row.status)

    @admin.display(description="attempts")
    def tried(self, row: OwnDelivery) -> int:
        return row.attempts

    @admin.display(description="published")
    def published(self, row: OwnDelivery) -> SafeString | str:
        now = timezone.now()
        published = ago(row.message.published_at, now=now)
        if not row.settled_at:
            return published
        return two_lines(published, format_html("settled {}", ago(row.settled_at, now=now)))


def link_to_own(message_id: int) -> SafeString:
    url = reverse("admin:delivery_ownmessage_change", args=[message_id])
    return format_html('<a class="inturn-link" href="{}">{}</a>', url, public_id(message_id))


def two_lines_with_link(row: OwnDelivery) -> SafeString:
    return two_lines(link_to_own(row.message_id), row.message.event_type.name)
