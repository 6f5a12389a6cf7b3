"""List pages with values added to all their rows by one query."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest


class CompletedChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # Load the rows now, so the completed objects are the shown objects.
        self.result_list = list(self.result_list)
        self.model_admin.complete(self.result_list)  # type: ignore[attr-defined]


class CompletedList:
    """Mixin for a ModelAdmin; `complete` adds values to the rows of a page."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CompletedChangeList

    def complete(self, rows: Sequence[Any]) -> None:
        raise NotImplementedError
