"""Lists with refreshed rows on the screen, and with the number of new ones.

A script refreshes the part `live-rows` of the list, with the id of the newest row in the header
`X-Inturn-Newest`. The answer has only the table, the ids of the rows, and the number of newer rows.
"""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from delivery.console.shared.base import id_of
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.refresh import refreshed_part
from delivery.database.queries import TimeUpError, statement_time_limit
from delivery.standing.bounded_counts import Bounded

# The element with the rows.
ROWS_PART = "live-rows"
HEADER = "X-Inturn-Newest"
NEW_LIMIT = 100
COUNT_SECONDS = 0.25


class LiveAdmin(KeysetAdmin):
    """A list with the switch *Live* above it."""

    def newer_rows(self, changelist: Any, newest: int) -> QuerySet[Any]:
        """Return the rows after this id within the list's filters."""
        rows: QuerySet[Any] = changelist.queryset.filter(pk__gt=newest)
        return rows

    def may_be_live(self, changelist: Any) -> bool:
        return True

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        page: HttpResponse = super().changelist_view(request, extra_context)
        if not isinstance(page, TemplateResponse) or "cl" not in (page.context_data or {}):
            return page
        assert page.context_data is not None
        changelist = page.context_data["cl"]
        page.context_data |= {
            "is_live_offered": self.may_be_live(changelist),
            "row_ids": ",".join(str(row.pk) for row in changelist.result_list),
        }
        if refreshed_part(request) == ROWS_PART:
            newest = id_of(request.headers.get(HEADER, "")) or 0
            page.context_data["newer"] = self._count(changelist, newest)
            page.template_name = "console/shared/live_rows.html"
        return page

    def _count(self, changelist: Any, newest: int) -> Bounded | None:
        if not self.may_be_live(changelist):
            return None
        rows = self.newer_rows(changelist, newest).order_by().values("pk")
        try:
            with statement_time_limit(COUNT_SECONDS):
                return Bounded(rows[: NEW_LIMIT + 1].count(), NEW_LIMIT)
        except TimeUpError:
            return None
