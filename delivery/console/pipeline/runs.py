"""Pipeline runs in the console: started by a button, followed live, and read afterwards."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery import pipeline
from delivery.console.pipeline import verification
from delivery.console.pipeline.effects import read_tried_changes
from delivery.console.pipeline.page import BY_BUTTON, TONES, Shown, read_pipeline
from delivery.console.pipeline.reporting import Reporting
from delivery.console.shared.base import actor_of
from delivery.console.shared.cells import two_lines_of
from delivery.console.shared.input_filters import choice_filter
from delivery.console.shared.job_page import WatchedAdmin
from delivery.console.shared.labels import label
from delivery.console.shared.times import ago
from delivery.models import PipelineRun, RunState, Step


@admin.register(PipelineRun)
class PipelineRunAdmin(Reporting, WatchedAdmin):
    empty_text = (
        "A run appears here when its schedule is due, or when you press one of the buttons above."
    )
    list_display = ["number", "shown_state", "rows", "took", "speed", "who", "began", "what"]
    list_filter = [
        choice_filter("Step", "step", Step.values),
        choice_filter("State", "state", RunState.values),
    ]
    list_before_template = "console/pipeline/runs.html"
    page_template = "console/pipeline/run.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PipelineRun]:
        rows: QuerySet[PipelineRun] = super().get_queryset(request)
        return rows.defer("log", "result", "options")

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))

        return [
            path(
                "request/<str:step>/", posted(self.request_run), name="delivery_pipelinerun_request"
            ),
            path("<int:object_id>/stop/", posted(self.stop), name="delivery_pipelinerun_stop"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list below the steps with their schedules and buttons."""
        shown = {
            **(extra_context or {}),
            "pipeline": read_pipeline(),
            "may_run": request.user.has_perm("delivery.add_pipelinerun"),
            "may_report": self.may_report(request),
        }
        page: HttpResponse = super().changelist_view(request, shown)
        return page

    def request_run(self, request: HttpRequest, step: str) -> HttpResponse:
        """Queue a run of the step; if a run is open already, show it."""
        if not request.user.has_perm("delivery.add_pipelinerun"):
            raise PermissionDenied
        if step.upper() not in BY_BUTTON:
            raise Http404
        try:
            run = pipeline.request_run(
                Step(step.upper()),
                options=_options(request, Step(step.upper())),
                actor=actor_of(request),
                now=timezone.now(),
            )
        except pipeline.RunOpenError as error:
            self.message_user(request, f"Not started: {error}", messages.WARNING)
            run = error.run
        else:
            self.message_user(request, "It starts within seconds; you may leave this page.")
        return HttpResponseRedirect(reverse("admin:delivery_pipelinerun_change", args=[run.pk]))

    def stop(self, request: HttpRequest, object_id: int) -> HttpResponse:
        run = get_object_or_404(PipelineRun, pk=object_id)
        if not self._may_stop(request, run):
            raise PermissionDenied
        if not pipeline.stop_run(run, actor=actor_of(request)):
            run.refresh_from_db(fields=["state"])
            return self.back(
                request, f"Nothing was done: it is {run.state}.", level=messages.WARNING
            )
        return self.back(request, "The run is stopping; its unfinished work is discarded.")

    def _may_stop(self, request: HttpRequest, run: PipelineRun) -> bool:
        """Return whether the user may stop the run.

        Users who may change runs may stop any; others may stop their own report.
        """
        is_own_report = run.step == Step.REPORT and run.asked_by == actor_of(request)
        return self.may_change_rows(request) or (is_own_report and self.may_report(request))

    def shown(self, request: HttpRequest, row: PipelineRun) -> dict[str, Any]:
        return {
            "run": row,
            "shown": Shown(run=row, now=timezone.now()),
            "verification": verification.read_verification(row),
            "tried_changes": read_tried_changes(row),
            "may_stop": self._may_stop(request, row) and not row.is_stopping,
            "may_run": request.user.has_perm("delivery.add_pipelinerun") and row.step in BY_BUTTON,
            "may_download": self.may_download(request, row),
        }

    @admin.display(description="run")
    def number(self, row: PipelineRun) -> SafeString:
        return format_html('<span class="inturn-time">{}</span>', row)

    @admin.display(description="state")
    def shown_state(self, row: PipelineRun) -> SafeString:
        return label(row.state, tone=TONES.get(RunState(row.state)))

    @admin.display(description="rows")
    def rows(self, row: PipelineRun) -> str:
        return _shown(row).rows

    @admin.display(description="took")
    def took(self, row: PipelineRun) -> str:
        return _shown(row).took

    @admin.display(description="rows/s")
    def speed(self, row: PipelineRun) -> str:
        return _shown(row).rows_per_second

    @admin.display(description="requested by")
    def who(self, row: PipelineRun) -> str:
        return row.asked_by or "the schedule"

    @admin.display(description="requested")
    def began(self, row: PipelineRun) -> SafeString | str:
        return ago(row.asked_at, now=timezone.now())

    @admin.display(description="details")
    def what(self, row: PipelineRun) -> SafeString | None:
        return two_lines_of(row.error or (row.doing if row.state == RunState.RUNNING else ""))


def _shown(row: PipelineRun) -> Shown:
    return Shown(run=row, now=timezone.now())


def _options(request: HttpRequest, step: Step) -> dict[str, Any]:
    return {"whole": True} if step == Step.VERIFY and "whole" in request.POST else {}
