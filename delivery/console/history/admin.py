"""The history in the console: charts in place of a list of the hours behind them."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from delivery.console.history import page as history
from delivery.console.history.range import requested_range
from delivery.console.shared.keyset import KeysetAdmin
from delivery.models import HistoryHour


@admin.register(HistoryHour)
class HistoryHourAdmin(KeysetAdmin):
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        period = requested_range(request.GET.dict(), now=timezone.now())
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Statistics",
            "history": history.read_history_page(period),
            "mistake": history.mistake_in(period, request.user),
            "suggestions": history.suggestions(request.user),
            "may_run": request.user.has_perm("delivery.add_pipelinerun"),
        }
        return TemplateResponse(request, "console/history/page.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Redirect to the charts: an hour has no page."""
        return HttpResponseRedirect(reverse("admin:delivery_historyhour_changelist"))
