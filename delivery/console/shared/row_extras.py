"""List pages that add values to all their rows with one query."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest


class CompletedChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # Load the rows now, so that the completed objects are the ones that are shown.
        self.result_list = list(self.result_list)
        self.model_admin.complete(self.result_list)  # type: ignore[attr-defined]


class CompletedList:
    """Mixin for a ModelAdmin; its `complete` adds values to the rows of a page."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CompletedChangeList

    def complete(self, rows: Sequence[Any]) -> None:
        raise NotImplementedError
