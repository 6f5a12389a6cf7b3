"""Retention in the console: retention periods, passes with their counts, and a start button."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.retention.page import read_retention_page
from delivery.console.shared.base import actor_of
from delivery.console.shared.input_filters import choice_filter
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.labels import label
from delivery.console.shared.refresh import is_refresh, reload_page
from delivery.console.shared.times import ago
from delivery.maintenance import retention
from delivery.models import RetentionRun, RetentionState
from subscriptions.values.times import duration

_TONES = {RetentionState.RUNNING: "open", RetentionState.DONE: "good"}


@admin.register(RetentionRun)
class RetentionRunAdmin(KeysetAdmin):
    empty_text = "A pass starts once an hour; each is listed with the rows that it removed."
    list_display = [
        "number",
        "shown_state",
        "messages_removed",
        "deliveries_removed",
        "attempts_removed",
        "began",
        "took",
    ]
    list_display_links = None
    list_filter = [choice_filter("State", "state", RetentionState.values)]
    list_before_template = "console/retention/periods.html"

    def get_urls(self) -> list[URLPattern]:
        start = self.admin_site.admin_view(require_POST(self.start))
        return [path("start/", start, name="delivery_retentionrun_start"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list below the retention periods and the running pass."""
        shown = {"retention": read_retention_page(), "may_start": _may_start(request)}
        if is_refresh(request):
            return self._progress(request, shown)
        page: HttpResponse = super().changelist_view(request, {**(extra_context or {}), **shown})
        return page

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Redirect to the list, which shows everything about a pass: it has no page."""
        return HttpResponseRedirect(reverse("admin:delivery_retentionrun_changelist"))

    def _progress(self, request: HttpRequest, shown: dict[str, Any]) -> HttpResponse:
        """Return the running pass without the list; the end of the pass reloads the page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if shown["retention"].run is None:
            return reload_page()
        return render(request, self.list_before_template, shown)

    def start(self, request: HttpRequest) -> HttpResponse:
        if not _may_start(request):
            raise PermissionDenied
        try:
            retention.start_pass(actor=actor_of(request), now=timezone.now())
        except retention.AlreadyRunningError as error:
            return self.back(request, f"Nothing was done. {error}", level=messages.WARNING)
        return self.back(request, "It has started; you may leave this page.")

    @admin.display(description="pass")
    def number(self, row: RetentionRun) -> str:
        return str(row.pk)

    @admin.display(description="state")
    def shown_state(self, row: RetentionRun) -> SafeString:
        if row.kept_because:
            return label("KEPT", tone="bad")
        return label(row.state, tone=_TONES.get(RetentionState(row.state)))

    @admin.display(description="messages removed")
    def messages_removed(self, row: RetentionRun) -> str:
        return f"{row.messages:,}"

    @admin.display(description="deliveries")
    def deliveries_removed(self, row: RetentionRun) -> str:
        return f"{row.deliveries:,}"

    @admin.display(description="attempts")
    def attempts_removed(self, row: RetentionRun) -> str:
        return f"{row.attempts:,}"

    @admin.display(description="started")
    def began(self, row: RetentionRun) -> SafeString | str:
        return ago(row.started_at, now=timezone.now())

    @admin.display(description="took")
    def took(self, row: RetentionRun) -> str:
        return duration((row.ended_at or timezone.now()) - row.started_at)


def _may_start(request: HttpRequest) -> bool:
    return request.user.has_perm("delivery.add_retentionrun")
