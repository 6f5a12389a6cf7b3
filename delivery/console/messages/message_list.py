"""The list of messages, as all who see messages have it."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Func, IntegerField, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString

from delivery.console.messages.search import MessageChangeList, with_range
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.statuses import counted_statuses, status_labels
from delivery.models.message import parse_public_id
from delivery.support.payload import may_see_payload


class MessageListAdmin(KeysetAdmin):
    list_display = ["message_id", "event_type", "publisher", "published", "size", "fate"]
    list_select_related = ["event_type", "publisher"]
    search_fields = ["id"]
    search_help_text = "Search by id, e.g. msg_1234"
    list_before_template = "console/messages/search.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        length = Func("body", function="octet_length", output_field=IntegerField())
        rows = super().get_queryset(request).defer("body", "headers")
        annotated: QuerySet[Any] = rows.annotate(length=length)
        return annotated

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term.strip():
            return queryset, False
        return queryset.filter(pk=parse_public_id(search_term.strip()) or 0), False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[MessageChangeList]:
        return MessageChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list.

        A text search has the start time in the address, so a link to it keeps the meaning.
        """
        if (query := with_range(request.GET)) is not None:
            return HttpResponseRedirect(f"?{query}")
        return super().changelist_view(
            request, {**(extra_context or {}), "may_see_payload": may_see_payload(request.user)}
        )

    def complete(self, rows: Sequence[Any]) -> None:
        counted = counted_statuses(row.pk for row in rows)
        for row in rows:
            row.statuses = counted.get(row.pk, [])

    @admin.display(description="size")
    def size(self, row: Any) -> str:
        return filesizeformat(row.length)

    @admin.display(description="deliveries")
    def fate(self, row: Any) -> SafeString | str:
        return status_labels(row.statuses)
