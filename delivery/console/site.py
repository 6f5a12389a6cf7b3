"""The admin site: Unfold's, with the overview as its first page."""

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.sites import UnfoldAdminSite

from delivery.console import live, overview
from subscriptions.admin.shown_once import shown_once


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]  # Unfold has no types
    index_title = "Overview"
    index_template = "console/overview.html"
    enable_nav_sidebar = True

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # Configuration is deleted one by one, with what depends on it in sight.
        self.disable_action("delete_selected")

    def extra_urls(self) -> list[URLPattern]:
        return [
            # Not wrapped in admin_view: a redirect to the login page would be swapped into the page.
            path("overview/", live.overview_part, name="overview_part"),
            path("shown-once/", self.admin_view(shown_once), name="shown_once"),
        ]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        shown = overview.read(now=timezone.now(), user=request.user)
        page: TemplateResponse = super().index(request, {"overview": shown, **(extra_context or {})})
        return page
