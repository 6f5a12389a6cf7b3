"""The page of a job that runs in the background, with a part that refreshes itself."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_GET

from delivery.console.shared.base import id_of
from delivery.console.shared.keyset import KeysetAdmin


class WatchedAdmin(KeysetAdmin):
    """The admin of a job's rows; `shown` returns the values for the page and for its live part."""

    page_template: str
    part_template: str

    def shown(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    def found(self, object_id: int) -> Any:
        """Return the row of a page; raise Http404 if there is none."""
        return get_object_or_404(self.model, pk=object_id)

    def get_urls(self) -> list[URLPattern]:
        # Not wrapped in admin_view: a redirect to the login page would be swapped into the page.
        name = f"{self.opts.app_label}_{self.opts.model_name}_part"
        return [
            path("<int:object_id>/part/", require_GET(self.part), name=name),
            *super().get_urls(),
        ]

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

    def part(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Return the live part of the page; a user who was signed out meanwhile gets a reload."""
        if not (
            request.user.is_active and request.user.is_staff and self.has_view_permission(request)
        ):
            return HttpResponse(headers={"HX-Refresh": "true"})
        answer = render(request, self.part_template, self.shown(request, self.found(object_id)))
        answer.headers["Cache-Control"] = "no-store"
        return answer
