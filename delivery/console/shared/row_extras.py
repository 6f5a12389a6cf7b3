"""List pages that add to their rows what one query knows of all of them."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest


class CompletedChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # Read now, so that the rows shown are the ones completed.
        self.result_list = list(self.result_list)
        self.model_admin.complete(self.result_list)  # type: ignore[attr-defined]


class CompletedList:
    """Mix into a ModelAdmin, and say in `complete` what to add to the rows of a page."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CompletedChangeList

    def complete(self, rows: Sequence[Any]) -> None:
        raise NotImplementedError
