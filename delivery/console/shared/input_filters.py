"""List filters by whole values, so an index applies and the URL is readable."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from subscriptions.matching.typed_names import UnknownNameError, names_to_suggest, object_id
from subscriptions.reach import reach_of_names
from subscriptions.values.times import parse_time_or_none

SUGGESTED_NAMES = 200
LARGEST_ID = 2**63 - 1
_AGE = re.compile(r"(?P<number>\d{1,6})(?P<unit>[smhdw])\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_OLDEST = timedelta(days=36_500)


def age_of(text: str) -> timedelta | None:
    """Return the time behind `90s`, `30m`, `1h`, `7d` or `2w`; None for other texts."""
    found = _AGE.match(text.strip().lower())
    if found is None:
        return None
    return min(timedelta(**{_UNITS[found["unit"]]: int(found["number"])}), _OLDEST)


class _InputFilter(SimpleListFilter):
    """A filter with a text input; `lookup` is the column it compares.

    `mistake` describes an invalid typed value; then no row matches.
    """

    template = "console/shared/input_filter.html"
    lookup: str
    input_attributes: dict[str, str] = {}
    mistake = ""

    def has_output(self) -> bool:
        return True

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        return []

    def suggestions(self) -> list[str]:
        return []

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        name = str(self.parameter_name)
        suggestions = self.suggestions()
        attributes = self.input_attributes | ({"list": f"names-{name}"} if suggestions else {})
        form = forms.Form({name: self.value() or ""})
        form.fields[name] = forms.CharField(
            label=self.title, required=False, widget=self.widget(attributes)
        )
        yield {"form": form, "suggestions": suggestions, "list_id": f"names-{name}"}

    def widget(self, attributes: dict[str, str]) -> forms.Widget:
        field: forms.Widget = UnfoldAdminTextInputWidget(attributes)
        return field

    def typed(self) -> str:
        return (self.value() or "").strip()


class ExactText(_InputFilter):
    """`?parameter_name=text` keeps the rows whose `lookup` equals the text."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.lookup: self.typed()}) if self.typed() else queryset


class NameFilter(ExactText):
    """Filters by the name of a configured object referred to by `lookup`; suggests the first names.

    An unknown name is a mistake, reported with the nearest name. The query compares ids: PostgreSQL
    has statistics of how many rows an id has, but must guess for a name.
    """

    named: type[Any]

    def __init__(
        self, request: HttpRequest, params: Any, model: type[Any], model_admin: ModelAdmin[Any]
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self.reach = reach_of_names(request.user, self.named)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        try:
            pk = object_id(self.named, self.typed(), reach=self.reach)
        except UnknownNameError as error:
            self.mistake = error.detail
            return queryset.none()
        return self.about(queryset, pk)

    def about(self, queryset: QuerySet[Any], pk: int) -> QuerySet[Any]:
        """Keep the rows about the object with this id."""
        return queryset.filter(**{self.lookup: pk})

    def suggestions(self) -> list[str]:
        return names_to_suggest(self.named, SUGGESTED_NAMES, reach=self.reach)


class MomentFilter(_InputFilter):
    """Filters by a time in UTC, such as `2026-08-02T10:15`, or so long ago, such as `1h`.

    An invalid time filters nothing.
    """

    input_attributes = {"type": "datetime-local", "step": "1"}

    def widget(self, attributes: dict[str, str]) -> forms.Widget:
        # The browser's field for times would lose an age.
        is_age = age_of(self.typed()) is not None
        return super().widget(attributes | ({"type": "text"} if is_age else {}))

    def moment(self) -> datetime | None:
        if (age := age_of(self.typed())) is not None:
            return timezone.now() - age
        return parse_time_or_none(self.typed())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        moment = self.moment()
        return queryset if moment is None else queryset.filter(**{self.lookup: moment})


class _TimeFilter(MomentFilter):
    """Filters by the time a row was added to an append-only table.

    Ids are nearly in the order of time, so an id at a safe distance bounds the rows to read,
    wherever the time is. No row takes longer than `SLACK` between time and id.
    """

    column = "at"
    SLACK = timedelta(minutes=5)


class Since(_TimeFilter):
    title = "Since (UTC)"
    parameter_name = "since"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        before = {f"{self.column}__lt": moment - self.SLACK}
        ids = (
            queryset.model._default_manager.filter(**before)
            .order_by(f"-{self.column}")
            .values_list("pk", flat=True)
        )
        return queryset.filter(**{f"{self.column}__gte": moment}, pk__gt=ids.first() or 0)


class Until(_TimeFilter):
    title = "Until (UTC)"
    parameter_name = "until"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        after = {f"{self.column}__gte": moment + self.SLACK}
        ids = (
            queryset.model._default_manager.filter(**after)
            .order_by(self.column)
            .values_list("pk", flat=True)
        )
        return queryset.filter(**{f"{self.column}__lt": moment}, pk__lt=ids.first() or LARGEST_ID)


class ChoiceFilter(_InputFilter):
    """Filters by a value of a closed set, from a drop-down; any other value filters nothing."""

    offered: Sequence[str]

    def widget(self, attributes: dict[str, str]) -> forms.Widget:
        choices = [("", "all"), *((choice, choice) for choice in self.offered)]
        field: forms.Widget = UnfoldAdminSelectWidget(attributes, choices=choices)
        return field

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return (
            queryset.filter(**{self.lookup: self.typed()})
            if self.typed() in self.offered
            else queryset
        )


def choice_filter(
    title: str, parameter: str, offered: Sequence[str], *, lookup: str = ""
) -> type[ChoiceFilter]:
    """Return a filter by the values of a column, named by `lookup` or else by the parameter."""

    class ColumnFilter(ChoiceFilter):
        pass

    ColumnFilter.title, ColumnFilter.parameter_name = title, parameter
    ColumnFilter.lookup, ColumnFilter.offered = lookup or parameter, offered
    return ColumnFilter
