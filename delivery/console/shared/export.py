"""Export of whole lists, as CSV or as JSON lines, with the filters of the page."""

import csv
import json
import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import Error
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.parameters import AFTER, BEFORE
from delivery.console.shared.times import ago

log = logging.getLogger(__name__)

ROWS_AT_ONCE = 1_000
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
BROKEN_OFF = "INCOMPLETE: the database failed, and older rows are missing. Export again."
_LAST_LINES = {"csv": f'"{BROKEN_OFF}"\r\n', "jsonl": json.dumps({"broken_off": BROKEN_OFF}) + "\n"}
# A spreadsheet takes a cell with this beginning for a formula, and would run somebody else's input.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class ExportedAdmin(KeysetAdmin):
    """A list with an export button for each format; `exported` defines the columns."""

    list_before_template = "console/shared/export.html"

    def exported(self, row: Any) -> dict[str, Any]:
        """Return the row as names and values, with the same names for each row."""
        raise NotImplementedError

    @admin.display(description="time")
    def when(self, row: Any) -> SafeString | str:
        return ago(row.at, now=timezone.now())

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_GET(self.export))
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        return [path("export/<str:form>/", view, name=name), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        kept = request.GET.copy()
        for name in (BEFORE, AFTER):
            kept.pop(name, None)
        shown = {"export_query": kept.urlencode(), **(extra_context or {})}
        page: HttpResponse = super().changelist_view(request, shown)
        return page

    def export(self, request: HttpRequest, form: str) -> StreamingHttpResponse:
        """Answer all rows within the filters, newest first, streamed in parts."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if form not in CONTENT_TYPES:
            raise Http404
        rows = map(self.exported, _in_parts(self.get_changelist_instance(request).queryset))
        name = f"{self.opts.verbose_name_plural}-{timezone.now():%Y%m%d-%H%M%S}.{form}".replace(
            " ", "-"
        )
        lines = csv_lines(rows) if form == "csv" else json_lines(rows)
        return StreamingHttpResponse(
            _with_last_lines(lines, _LAST_LINES[form]),
            content_type=CONTENT_TYPES[form],
            headers={
                "Content-Disposition": f'attachment; filename="{name}"',
                "Cache-Control": "no-store",
            },
        )


def csv_lines(rows: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines, names first; nothing if there are no rows.

    A cell like a formula gets an apostrophe in front.
    """
    writer = csv.writer(_Echo())
    for number, row in enumerate(rows):
        if number == 0:
            yield writer.writerow(row)
        yield writer.writerow([_cell(value) for value in row.values()])


def json_lines(rows: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, default=_plain) + "\n"


def _with_last_lines(lines: Iterator[str], otherwise: str) -> Iterator[str]:
    """Yield the lines, and `otherwise` if the database fails, so the file looks incomplete."""
    is_begun = False
    try:
        for line in lines:
            yield line
            is_begun = True
    except Error:
        if not is_begun:
            raise
        log.exception("an export was interrupted")
        yield otherwise


def _in_parts(rows: QuerySet[Any]) -> Iterator[Model]:
    """Yield the rows, newest first, by several short queries.

    A single query for the time of a download would hold up vacuuming.
    """
    part = list(rows.order_by("-pk")[:ROWS_AT_ONCE])
    while part:
        yield from part
        part = list(rows.filter(pk__lt=part[-1].pk).order_by("-pk")[:ROWS_AT_ONCE])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else _plain(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


class _Echo:
    """The file of the csv writer; `writerow` returns the text written to it."""

    def write(self, text: str) -> str:
        return text
