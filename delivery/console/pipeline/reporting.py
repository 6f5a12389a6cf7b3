"""Reports for auditors: requested by a form, written by the pipeline, then downloaded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from delivery import pipeline
from delivery.console.pipeline.presets import report_presets
from delivery.console.pipeline.report_form import ReportForm
from delivery.console.shared.base import ConsoleAdmin, actor_of
from delivery.console.shared.form_fields import open_names
from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline import settings
from delivery.support.payload import may_see_payload
from subscriptions import changes

PART_BYTES = 256 * 1024
_CONTENT_TYPES = {".csv": "text/csv; charset=utf-8", ".parquet": "application/vnd.apache.parquet"}


class Reporting(ConsoleAdmin):
    """Mixin for the admin of pipeline runs."""

    def get_urls(self) -> list[URLPattern]:
        def viewed(view: Any) -> Any:
            return self.admin_site.admin_view(view)

        return [
            path("report/", viewed(self.report), name="delivery_pipelinerun_report"),
            path(
                "<int:object_id>/file/",
                viewed(require_GET(self.download)),
                name="delivery_pipelinerun_file",
            ),
            *super().get_urls(),
        ]

    def may_report(self, request: HttpRequest) -> bool:
        return request.user.has_perm("delivery.make_report")

    def may_download(self, request: HttpRequest, run: PipelineRun) -> bool:
        """Return whether the user may download the file of a run.

        A report with bodies is only for users who may see payloads.
        """
        if run.step != Step.REPORT or run.state != RunState.DONE or not self.may_report(request):
            return False
        return not run.options.get("with_bodies") or may_see_payload(request.user)

    def report(self, request: HttpRequest) -> HttpResponse:
        """Show the form; on POST, queue a run for the report."""
        if not self.may_report(request):
            raise PermissionDenied
        may_see = may_see_payload(request.user)
        form = ReportForm(request.POST or None, initial=request.GET.dict(), may_see_payload=may_see)
        open_names(form, request.user)
        if request.method == "POST" and form.is_valid():
            options = form.options() | {"to": str(settings.reports_folder())}
            run = pipeline.request_run(
                Step.REPORT, options=options, actor=actor_of(request), now=timezone.now()
            )
            self.message_user(request, "The report is being written; you may leave this page.")
            return HttpResponseRedirect(reverse("admin:delivery_pipelinerun_change", args=[run.pk]))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Reports",
            "form": form,
            "presets": report_presets(timezone.now()),
            "may_see_payload": may_see,
        }
        return TemplateResponse(request, "console/pipeline/report.html", context)

    def download(self, request: HttpRequest, object_id: int) -> HttpResponseBase:
        """Return the file of a report.

        The configuration log records who downloaded it, and when.
        """
        run = get_object_or_404(PipelineRun, pk=object_id)
        if not self.has_view_permission(request, run) or not self.may_report(request):
            raise PermissionDenied
        if run.step != Step.REPORT or run.state != RunState.DONE:
            raise Http404
        if not self.may_download(request, run):
            raise PermissionDenied
        file = report_file(run)
        if file is None:
            raise Http404("The file is no longer on this machine: create the report again.")
        values = {"file": file.name, "rows": run.result.get("rows")}
        changes.record_change(
            actor=actor_of(request), action="downloaded", instance=run, before=None, after=values
        )
        content_type = _CONTENT_TYPES.get(file.suffix, "application/octet-stream")
        headers = {
            "Content-Disposition": f'attachment; filename="{file.name}"',
            "Content-Length": str(file.stat().st_size),
            "Cache-Control": "no-store",
        }
        return StreamingHttpResponse(_parts(file), content_type=content_type, headers=headers)


def report_file(run: PipelineRun) -> Path | None:
    """Return the file of a run, if it exists; never a file outside the folder of reports."""
    folder = settings.reports_folder().resolve()
    file = (folder / str(run.result.get("path", ""))).resolve()
    return file if file.is_relative_to(folder) and file.is_file() else None


def _parts(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while part := opened.read(PART_BYTES):
            yield part
