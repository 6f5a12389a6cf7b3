"""The page of a job in the background: it refreshes itself until the job has ended."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from delivery.console.shared.base import id_of
from delivery.console.shared.keyset import KeysetAdmin


class WatchedAdmin(KeysetAdmin):
    """The admin of a job's rows; `shown` returns the values for the page."""

    page_template: str

    def shown(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    def found(self, object_id: int) -> Any:
        """Return the row of a page; raise Http404 if there is none."""
        return get_object_or_404(self.model, pk=object_id)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row = self.found(id_of(object_id) or 0)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            **self.shown(request, row),
            "opts": self.opts,
            "original": row,
            "title": str(row).capitalize(),
        }
        return TemplateResponse(request, self.page_template, context)
