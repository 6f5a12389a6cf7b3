"""Status pages: the first page of a row, which refreshes itself; the form is behind *Edit*."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.shared.base import ConsoleAdmin
from delivery.database.queries import reading_one_moment
from delivery.support.payload import log_view


class StatusAdmin(ConsoleAdmin):
    """The admin of rows with a status page; the templates get the values of `status_values`.

    They are read as of one moment, in which nothing can be written.
    """

    list_display_links = None
    change_form_outer_before_template = "console/shared/status_link.html"
    status_template = ""

    def status_rows(self) -> QuerySet[Any]:
        raise NotImplementedError

    def status_values(self, row: Any, request: HttpRequest) -> dict[str, Any]:
        raise NotImplementedError

    def seen_message(self, values: Mapping[str, Any]) -> int | None:
        """Return the message of which the values show a part, if any: the view of it is logged."""
        return None

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path(
                "<int:object_id>/", self.admin_site.admin_view(self.status), name=f"{name}_status"
            ),
            *super().get_urls(),
        ]

    def status(self, request: HttpRequest, object_id: int) -> HttpResponse:
        row = get_object_or_404(self.status_rows(), pk=object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        with reading_one_moment():
            values = self.status_values(row, request)
        message_id = self.seen_message(values)
        if message_id is not None:
            log_view(request.user, message_id)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": str(row),
            "original": row,
            "kind": str(self.opts.verbose_name),
            "has_change_permission": self.has_change_permission(request, row),
            **values,
        }
        return TemplateResponse(request, self.status_template, context)

    def status_link(self, row: Any, text: str) -> SafeString:
        return format_html('<a class="inturn-link" href="{}">{}</a>', self._status_url(row), text)

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        return HttpResponseRedirect(self._status_url(obj))

    def response_post_save_change(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        return HttpResponseRedirect(self._status_url(obj))

    def _status_url(self, row: Any) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_status", args=[row.pk])
