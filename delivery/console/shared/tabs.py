"""Tabs above a list: all rows, failed, waiting, and in doubt.

Each tab has the number of rows within the other filters. A second request brings the numbers, so no
page waits for them; a count ends at a limit and at a time, and is then shown as more than the
limit, or left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from delivery.console.shared.input_filters import ExactText
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.parameters import OF_PAGE, TAB
from delivery.console.shared.refresh import refreshed_part
from delivery.database.queries import TimeUpError, statement_time_limit
from delivery.standing.bounded_counts import Bounded
from delivery.states import FAILURES, OPEN, Status

# The element with the tabs.
TABS_PART = "tabs"
COUNT_LIMIT = 10_000
COUNT_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Tab:
    """The deliveries with any of the statuses; with none of them, all."""

    name: str
    title: str
    statuses: tuple[Status, ...] = ()


ALL = Tab("", "All")
FAILED = Tab("failed", "Failed", tuple(status for status in FAILURES if status != Status.IN_DOUBT))
WAITING = Tab("waiting", "Waiting", OPEN)
IN_DOUBT = Tab("in-doubt", "In doubt", (Status.IN_DOUBT,))
TABS = (ALL, FAILED, WAITING, IN_DOUBT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTab:
    """A tab of a page; `count` is None until it is counted, and if counting takes too long."""

    tab: Tab
    address: str
    is_current: bool
    count: Bounded | None = None


def statuses_of(params: Mapping[str, Any]) -> tuple[Status, ...]:
    """Return the statuses chosen by a list's address; empty for all.

    A status is narrower than a tab, so the tab then does not count.
    """
    status = str(params.get("status", ""))
    if status in Status.values:
        return (Status(status),)
    return _named(params).statuses


class TabFilter(ExactText):
    """The choice of a tab; the panel of filters has no field for it, but keeps it."""

    title = "Tab"
    parameter_name = TAB

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


class TabbedAdmin(KeysetAdmin):
    """A list with tabs; `counted` says how a tab's rows are counted."""

    def counted(self, rows: QuerySet[Any], tab: Tab) -> QuerySet[Any]:
        """Return a row for each of the list's rows in the tab, in no order."""
        raise NotImplementedError

    def may_count(self, params: Mapping[str, Any]) -> bool:
        return True

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if refreshed_part(request) == TABS_PART:
            return self._counted_tabs(request)
        shown = {"tabs": shown_tabs(request.GET.dict()), **(extra_context or {})}
        page: HttpResponse = super().changelist_view(request, shown)
        return page

    def _counted_tabs(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        tabs = shown_tabs(request.GET.dict())
        if self.may_count(request.GET):
            rows = self._untabbed(request)
            tabs = [_with_count(shown, self.counted(rows, shown.tab)) for shown in tabs]
        return render(request, "console/shared/tabs.html", {"tabs": tabs})

    def _untabbed(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows within the other filters."""
        kept = request.GET.copy()
        for name in (TAB, "status", *OF_PAGE):
            kept.pop(name, None)
        request.GET = kept  # type: ignore[assignment]  # The stubs want an immutable dictionary.
        rows: QuerySet[Any] = self.get_changelist_instance(request).queryset
        return rows.select_related(None)


def shown_tabs(params: Mapping[str, str]) -> list[ShownTab]:
    """Return the tabs of a list with these parameters, each with an address."""
    kept = {
        name: value
        for name, value in params.items()
        if value and name not in (TAB, "status", *OF_PAGE)
    }
    current = _current(params)
    return [
        ShownTab(
            tab=tab,
            address=f"?{urlencode(kept | ({TAB: tab.name} if tab.name else {}))}",
            is_current=tab is current,
        )
        for tab in TABS
    ]


def _current(params: Mapping[str, str]) -> Tab | None:
    """Return the tab of the address's choice; None for a status without a tab."""
    statuses = set(statuses_of(params))
    if not statuses:
        return ALL
    return next((tab for tab in TABS if statuses <= set(tab.statuses)), None)


def _named(params: Mapping[str, Any]) -> Tab:
    name = str(params.get(TAB, ""))
    return next((tab for tab in TABS if tab.name == name), ALL)


def _with_count(shown: ShownTab, rows: QuerySet[Any]) -> ShownTab:
    try:
        with statement_time_limit(COUNT_SECONDS):
            found = rows.order_by()[: COUNT_LIMIT + 1].count()
    except TimeUpError:
        return shown
    return ShownTab(
        tab=shown.tab,
        address=shown.address,
        is_current=shown.is_current,
        count=Bounded(found, COUNT_LIMIT),
    )


def narrow(rows: QuerySet[Any], statuses: Sequence[Status]) -> QuerySet[Any]:
    """Keep the deliveries with any of the statuses; all if there are none."""
    return rows.filter(status__in=statuses) if statuses else rows
