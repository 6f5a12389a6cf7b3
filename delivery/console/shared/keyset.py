"""Lists of append-only tables: read only, newest first, in pages of equal cost at any depth."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import F, Model, QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpRequest

from delivery.console.shared.base import FEW_ROWS, ConsoleAdmin, ReadOnly, id_of
from delivery.console.shared.parameters import AFTER, BEFORE

# This many ids are read in some milliseconds.
FEW = 10_000


class KeysetPage(Paginator[Any]):
    """A substitute for the paginator of Django's list pages, with only the current page."""

    template_name = "console/shared/keyset_pagination.html"
    older_url: str | None = None
    newer_url: str | None = None


class KeysetChangeList(ChangeList):
    """A list page cut by id, `?before=` and `?after=`, without counting and without offsets."""

    def get_filters_params(self, params: Any = None) -> Any:
        kept = super().get_filters_params(params)
        return {name: value for name, value in kept.items() if name not in (BEFORE, AFTER)}

    def get_results(self, request: HttpRequest) -> None:
        rows, has_newer, has_older = self._page()
        self.result_list = rows
        self.result_count = self.full_result_count = len(rows)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        page = KeysetPage(rows, self.list_per_page)
        if has_older and rows:
            page.older_url = self.get_query_string({BEFORE: rows[-1].pk}, [AFTER])
        if has_newer and rows:
            page.newer_url = self.get_query_string({AFTER: rows[0].pk}, [BEFORE])
        self.paginator = page
        self.model_admin.complete(rows)  # type: ignore[attr-defined]

    def _page(self) -> tuple[list[Model], bool, bool]:
        """Return a page's rows, and whether there are newer and older ones."""
        before, after = self._bound(BEFORE), self._bound(AFTER)
        if after is not None:
            rows = self._first_rows(self.queryset.filter(pk__gt=after), F("pk").asc())
            return rows[: self.list_per_page][::-1], len(rows) > self.list_per_page, True
        queryset = self.queryset if before is None else self.queryset.filter(pk__lt=before)
        rows = self._first_rows(queryset, F("pk").desc())
        return rows[: self.list_per_page], before is not None, len(rows) > self.list_per_page

    def _first_rows(self, rows: QuerySet[Model], order: OrderBy) -> list[Model]:
        count = self.list_per_page + 1
        parts = self.model_admin.parts(rows, self.params)  # type: ignore[attr-defined]
        if len(parts) > 1:
            first = [id for part in parts for id in _first_ids(part, order, count)]
            rows = self.root_queryset.filter(pk__in=sorted(first, reverse=order.descending)[:count])
        elif self.model_admin.leaves_few(self.params):  # type: ignore[attr-defined]
            # A small result is found by the filter's index and sorted here; in the order of ids the
            # database would scan millions of rows. In a large result this scan finds some soon.
            ids = list(rows.order_by().values_list("pk", flat=True)[: FEW + 1])
            if len(ids) <= FEW:
                rows = self.root_queryset.filter(
                    pk__in=sorted(ids, reverse=order.descending)[:count]
                )
        return list(rows.order_by(order)[:count])

    def _bound(self, name: str) -> int | None:
        return id_of(self.params.get(name, ""))


class KeysetAdmin(ReadOnly, ConsoleAdmin):
    """`complete` gets a page's rows, to add values costing a query per row."""

    list_per_page = FEW_ROWS
    show_full_result_count = False
    sortable_by: Sequence[str] = ()
    ordering = ["-id"]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return KeysetChangeList

    def complete(self, rows: Sequence[Any]) -> None:
        pass

    def leaves_few(self, params: Mapping[str, Any]) -> bool:
        """Return whether the filters leave few rows.

        A few are faster to find by the filter's index and sort than to find among all by id.
        """
        return False

    def parts(self, rows: QuerySet[Any], params: Mapping[str, Any]) -> Sequence[QuerySet[Any]]:
        """Return the rows in parts, if only each part has an index in the order of ids."""
        return [rows]


def _first_ids(rows: QuerySet[Any], order: OrderBy, count: int) -> list[int]:
    return list(rows.order_by(order).values_list("pk", flat=True)[:count])
