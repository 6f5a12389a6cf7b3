"""Messages in the console: found by any known detail, and shown with all their deliveries."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from delivery.console.archive import page as archive
from delivery.console.messages import page as message_page
from delivery.console.messages.message_list import MessageListAdmin
from delivery.console.messages.search import (
    BodyFilter,
    HeaderFilter,
    SearchedStatusFilter,
    SearchedSubscriberFilter,
    SearchedSubscriptionFilter,
    requested_search,
)
from delivery.console.messages.trace_export import TraceReader, json_parts
from delivery.console.messages.trace_text import text_parts
from delivery.console.shared.base import id_of
from delivery.console.shared.labels import two_lines
from delivery.console.shared.list_filters import (
    DestinationFilter,
    EventTypeFilter,
    IdFrom,
    IdTo,
    PublishedSince,
    PublishedUntil,
    PublisherFilter,
)
from delivery.console.shared.list_with_pane import SplitAdmin
from delivery.console.shared.live import LiveAdmin
from delivery.console.shared.rights import journal_url, may_toggle, reads_journal
from delivery.console.shared.tabs import Tab, TabbedAdmin, TabFilter
from delivery.console.shared.times import ago
from delivery.models import Delivery, Message
from delivery.models.delivery import MAX_MESSAGE_ID
from delivery.models.message import parse_public_id, public_id
from delivery.support.payload import log_view, may_see_payload

TRACE_FORMS = {"json": ("application/json", "trace.json"), "text": ("text/plain", "trace.txt")}


@admin.register(Message)
class MessageAdmin(MessageListAdmin, LiveAdmin, TabbedAdmin, SplitAdmin):
    empty_text = (
        "Messages appear here as publishers POST them to /api/v1/events/<event type>/messages."
    )
    list_filter = [
        EventTypeFilter,
        PublisherFilter,
        SearchedStatusFilter,
        SearchedSubscriberFilter,
        SearchedSubscriptionFilter,
        DestinationFilter,
        PublishedSince,
        PublishedUntil,
        IdFrom,
        IdTo,
        HeaderFilter,
        BodyFilter,
        TabFilter,
    ]
    pane_template = "console/messages/message.html"

    def may_count(self, params: Mapping[str, Any]) -> bool:
        """Return whether the messages of the tabs are countable: not if bodies must be read."""
        search = requested_search(params)
        return not search.reads_payloads and search.subscriptions is None

    def may_be_live(self, changelist: Any) -> bool:
        return not requested_search(changelist.params).reads_payloads

    def newer_rows(self, changelist: Any, newest: int) -> QuerySet[Message]:
        search = requested_search(changelist.params)
        return search.among(changelist.queryset, newest + 1, MAX_MESSAGE_ID - 1)

    def counted(self, rows: QuerySet[Message], tab: Tab) -> QuerySet[Any]:
        if not tab.statuses:
            return rows.values("pk")
        found = Delivery.objects.filter(
            status__in=tab.statuses, message_id__in=rows.order_by().values("pk")
        )
        return found.values("message_id").distinct()

    def get_urls(self) -> list[URLPattern]:
        raw = self.admin_site.admin_view(require_GET(self.raw))
        trace = self.admin_site.admin_view(require_GET(self.export_trace))
        return [
            path("<int:object_id>/raw/", raw, name="delivery_message_raw"),
            *(
                path(
                    f"<int:object_id>/trace/{form}/",
                    trace,
                    {"form": form},
                    name=f"delivery_message_trace_{form}",
                )
                for form in TRACE_FORMS
            ),
            *super().get_urls(),
        ]

    def pane_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        message = self._viewed(request, object_id)
        may_see = may_see_payload(request.user)
        if may_see:
            log_view(request.user, message.pk)
        wanted = message_page.WantedPage(
            may_see=may_see,
            reads_journal=reads_journal(request.user),
            start=id_of(request.GET.get("deliveries", "")) or 0,
            explains_all=request.GET.get("explain") == "all",
        )
        may_change = request.user.has_perm("delivery.change_delivery")
        return {
            "opened": message,
            "page": message_page.read_message_page(message, wanted),
            "may_see_payload": may_see,
            "may_change": may_change,
            "may_edit": may_change and may_see,
            "may_toggle": may_toggle(request.user),
            "may_see_log": request.user.has_perm("subscriptions.view_configurationchange"),
            "journal_url": journal_url(request.user, message=message.public_id),
        }

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        message_id = parse_public_id(object_id) or 0
        try:
            return self.page(
                request,
                object_id,
                title=public_id(message_id),
                template="console/messages/page.html",
            )
        except Http404:
            # Retention has removed the message, but findings, journal and people's links still name
            # it.
            if not (self.has_view_permission(request) and archive.may_have_message(message_id)):
                raise
        return HttpResponseRedirect(
            reverse("admin:delivery_archivefile_message", args=[message_id])
        )

    def raw(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Return the exact bytes, as a plain-text download.

        Otherwise a browser could run a script sent by a publisher.
        """
        message = self._viewed(request, str(object_id))
        if not may_see_payload(request.user):
            raise PermissionDenied
        log_view(request.user, message.pk)
        return HttpResponse(
            bytes(message.body),
            content_type="text/plain; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{message.public_id}.txt"'},
        )

    def export_trace(
        self, request: HttpRequest, object_id: int, form: str
    ) -> StreamingHttpResponse:
        """Return the whole trace as a file: as `json`, or as `text` for a ticket."""
        message = self._viewed(request, str(object_id))
        reader = TraceReader(
            name=request.user.get_username(),
            may_see=may_see_payload(request.user),
            reads_journal=reads_journal(request.user),
            now=timezone.now(),
        )
        if reader.may_see:
            log_view(request.user, message.pk)
        content_type, suffix = TRACE_FORMS[form]
        return StreamingHttpResponse(
            json_parts(message, reader) if form == "json" else text_parts(message, reader),
            content_type=f"{content_type}; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="{message.public_id}.{suffix}"',
                "Cache-Control": "no-store",
            },
        )

    def _viewed(self, request: HttpRequest, object_id: str) -> Message:
        rows = Message.objects.select_related("event_type", "publisher")
        message = get_object_or_404(rows, pk=parse_public_id(object_id) or 0)
        if not self.has_view_permission(request, message):
            raise PermissionDenied
        return message

    @admin.display(description="message")
    def message_id(self, row: Message) -> SafeString:
        return self.opening(row, row.public_id)

    @admin.display(description="published")
    def published(self, row: Message) -> SafeString | str:
        when = ago(row.published_at, now=timezone.now())
        return two_lines(when, f"delivered to {row.destination}") if row.destination else when
