"""Lists that can be taken away whole: as CSV or as JSON lines, with the filters of the page."""

import csv
import json
import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import Error
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_GET

from subscriptions.admin.shared.keyset import AFTER, BEFORE, KeysetAdmin

log = logging.getLogger(__name__)

ROWS_AT_ONCE = 1_000
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
BROKEN_OFF = "INCOMPLETE: the database failed, and older rows are missing. Export again."
_LAST_LINES = {"csv": f'"{BROKEN_OFF}"\r\n', "jsonl": json.dumps({"broken_off": BROKEN_OFF}) + "\n"}
# With these a spreadsheet takes a cell for a formula, and runs what somebody else wrote.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class ExportedAdmin(KeysetAdmin):
    """A list with a button for each format; `exported` says what a row is there."""

    list_before_template = "console/export.html"

    def exported(self, row: Any) -> dict[str, Any]:
        """Return the row as names and values; the same names for each."""
        raise NotImplementedError

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
        """Answer all that the filters fit, newest first, a part of it at a time."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if form not in CONTENT_TYPES:
            raise Http404
        rows = map(self.exported, _in_parts(self.get_changelist_instance(request).queryset))
        name = f"{self.opts.verbose_name_plural}-{timezone.now():%Y%m%d-%H%M%S}.{form}".replace(" ", "-")
        lines = csv_lines(rows) if form == "csv" else json_lines(rows)
        return StreamingHttpResponse(
            _to_the_end(lines, _LAST_LINES[form]),
            content_type=CONTENT_TYPES[form],
            headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
        )


def csv_lines(rows: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines, the names first; of no rows none. A cell that looks like a formula begins with an apostrophe."""
    writer = csv.writer(_Echo())
    for number, row in enumerate(rows):
        if number == 0:
            yield writer.writerow(row)
        yield writer.writerow([_cell(value) for value in row.values()])


def json_lines(rows: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, default=_plain) + "\n"


def _to_the_end(lines: Iterator[str], otherwise: str) -> Iterator[str]:
    """Yield the lines, and another where the database failed: what is sent by then would look whole."""
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
    """Yield the rows, newest first, by queries of their own: one that lasts as long as a download hurts vacuuming."""
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
    """What csv writes to; `writerow` returns it."""

    def write(self, text: str) -> str:
        return text
