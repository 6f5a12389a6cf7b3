"""Findings of VERIFY runs in the console: each violation with the rows it names."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.pipeline.verification import with_existence
from delivery.console.shared.base import id_of
from delivery.console.shared.input_filters import ExactText
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.labels import label
from delivery.models import Finding


class RunFilter(ExactText):
    """Filter by the number of a run. An invalid number matches nothing."""

    title = "Run"
    parameter_name = "run"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(run_id=id_of(self.typed()) or 0) if self.typed() else queryset


class FindingKindFilter(ExactText):
    title = "Kind"
    parameter_name = lookup = "kind"


@admin.register(Finding)
class FindingAdmin(KeysetAdmin):
    empty_text = (
        "Findings of the step verify appear here. It checks the history, once a day by default."
    )
    list_display = ["shown_kind", "what", "rows", "found_by"]
    list_display_links = None
    list_filter = [RunFilter, FindingKindFilter]
    list_select_related = ["run"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Finding]:
        rows: QuerySet[Finding] = (
            super().get_queryset(request).defer("run__log", "run__result", "run__options")
        )
        return rows

    def complete(self, rows: Sequence[Any]) -> None:
        with_existence(rows)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Redirect to the run's page, which shows all findings.

        A finding has no page.
        """
        finding = get_object_or_404(Finding, pk=id_of(object_id) or 0)
        return HttpResponseRedirect(
            reverse("admin:delivery_pipelinerun_change", args=[finding.run_id])
        )

    @admin.display(description="kind")
    def shown_kind(self, row: Finding) -> SafeString:
        return label(row.kind, tone="bad")

    @admin.display(description="description")
    def what(self, row: Finding) -> SafeString:
        return format_html('<span class="inturn-wrap">{}</span>', row.text)

    @admin.display(description="rows")
    def rows(self, row: Finding) -> SafeString:
        return render_to_string("console/pipeline/finding_rows.html", {"finding": row})

    @admin.display(description="found by")
    def found_by(self, row: Finding) -> SafeString:
        url = reverse("admin:delivery_pipelinerun_change", args=[row.run_id])
        return format_html('<a class="inturn-link" href="{}">{}</a>', url, row.run)
