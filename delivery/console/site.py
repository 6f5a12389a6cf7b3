"""The admin site: Unfold's, with the overview as the first page."""

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.sites import UnfoldAdminSite

from delivery.console.first_steps import card
from delivery.console.holding.sending import hold_all, release_all, sending_banner, sending_page
from delivery.console.navigation import guide_address, title_of_list
from delivery.console.omnibox.view import omnibox_results
from delivery.console.overview.parts import overview_parts
from delivery.console.own.home import read_own_home
from delivery.console.people.known_browser import remember_browser
from delivery.console.people.sign_in_form import SignInForm
from delivery.console.saved_views.posts import delete_view, rename_view, save_view
from delivery.console.shared.one_time_secret import shown_once
from delivery.console.shared.refresh import View, is_refresh, reloading_if_refused
from delivery.console.shared.rights import is_developer, may_see_overview
from subscriptions import sign_in
from subscriptions.changes import record_new_password
from subscriptions.models import Door
from subscriptions.sign_in import Visitor
from subscriptions.values.client_address import client_address


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]  # Unfold has no types
    index_title = "Overview"
    index_template = "console/overview/page.html"
    enable_nav_sidebar = True

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.login_form = SignInForm
        # Configuration is deleted one object at a time, with a view of the dependents.
        self.disable_action("delete_selected")

    def extra_urls(self) -> list[URLPattern]:
        return [
            *self._first_steps(),
            *self._saved_views(),
            path("sending/", self.admin_view(self.sending), name="sending"),
            path("sending/hold/", self.admin_view(hold_all), name="sending_hold"),
            path("sending/release/", self.admin_view(release_all), name="sending_release"),
            path("sending/banner/", self.admin_view(sending_banner), name="sending_banner"),
            path("omnibox/", self.admin_view(omnibox_results), name="omnibox"),
            path("shown-once/", self.admin_view(shown_once), name="shown_once"),
        ]

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        return reloading_if_refused(super().admin_view(view, cacheable), self.has_permission)

    def _first_steps(self) -> list[URLPattern]:
        create = self.admin_view(card.create_first_steps)
        dismiss = self.admin_view(card.dismiss_first_steps)
        return [
            path("first-steps/", create, name="first_steps_create"),
            path("first-steps/dismiss/", dismiss, name="first_steps_dismiss"),
        ]

    def _saved_views(self) -> list[URLPattern]:
        rename, delete = self.admin_view(rename_view), self.admin_view(delete_view)
        return [
            path("views/save/", self.admin_view(save_view), name="saved_view_save"),
            path("views/<int:object_id>/rename/", rename, name="saved_view_rename"),
            path("views/<int:object_id>/delete/", delete, name="saved_view_delete"),
        ]

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """Return Django's list of an app's models; nothing for all apps.

        The sidebar stands for this list, which took 4 ms of each page.
        """
        if app_label is None:
            return []
        apps: list[dict[str, Any]] = super().get_app_list(request, app_label)
        return apps

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the version, and the address of the guide's page about the current page.

        A self-refreshing part of a page shows nothing of it.
        """
        if is_refresh(request):
            return {}
        context: dict[str, Any] = super().each_context(request)
        match = request.resolver_match
        view_name = match.view_name if match else ""
        return context | {
            "guide_address": guide_address(view_name),
            "view_name": view_name,
            "version": settings.VERSION,
        }

    def title_of_list(self, opts: Any) -> str:
        return title_of_list(opts)

    def sending(self, request: HttpRequest) -> HttpResponse:
        return sending_page(request, self.each_context(request))

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return 429 to a user who has to wait, so scripts understand it too."""
        answer: HttpResponse = super().login(request, extra_context)
        if request.method == "POST" and request.user.is_authenticated:
            remember_browser(request, answer, request.user.get_username())
        shown = answer.context_data if isinstance(answer, TemplateResponse) else None
        form = (shown or {}).get("form")
        seconds = getattr(form, "throttled_seconds", None)
        if seconds is not None:
            answer.status_code = HTTPStatus.TOO_MANY_REQUESTS
            answer.headers["Retry-After"] = str(seconds)
        return answer

    def logout(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        name = request.user.get_username()
        answer: HttpResponse = super().logout(request, extra_context)
        if name and not request.user.is_authenticated:
            sign_in.sign_out(
                Visitor(door=Door.CONSOLE, username=name, address=client_address(request)),
                now=timezone.now(),
            )
        return answer

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Change the user's own password.

        The configuration log records it like any other change.
        """
        with transaction.atomic():
            answer: HttpResponse = super().password_change(request, extra_context)
            if answer.status_code == HTTPStatus.FOUND and request.user.is_authenticated:
                record_new_password(request.user, actor=request.user.get_username())
        return answer

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        context = dict(extra_context or {})
        if may_see_overview(request.user):
            template = self.index_template
            context |= overview_parts(request, now=timezone.now())
        elif is_refresh(request):
            raise PermissionDenied
        elif is_developer(request.user):
            template = "console/own/home.html"
            context["own"] = read_own_home(request.user, now=timezone.now())
        else:
            template = "console/people/no_role.html"
        page: TemplateResponse = super().index(request, context)
        page.template_name = template
        return page
