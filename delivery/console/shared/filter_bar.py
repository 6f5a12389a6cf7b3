"""The bar of filters above a list: a removable chip for each active one, and the mistakes in them.

A list's address has all filters; a chip leads to the same address without the chip's filter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.admin import FieldListFilter, ListFilter, SimpleListFilter
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList

from delivery.console.shared.input_filters import MomentFilter
from delivery.console.shared.parameters import OF_PAGE, TAB
from delivery.console.shared.times import marked_up_time


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter in words, and the address of the list without it."""

    title: str
    value: str
    address: str


def active_chips(changelist: ChangeList) -> list[Chip]:
    return [
        Chip(title, value, _address(changelist, names))
        for title, value, names in _active(changelist)
    ]


def mistakes(changelist: ChangeList) -> list[str]:
    """Return the mistakes in the values of the filters, a sentence each."""
    found = (getattr(spec, "mistake", "") for spec in changelist.filter_specs)
    return [mistake for mistake in found if mistake]


def filter_query(changelist: ChangeList) -> str:
    """Return the filters of the list as a query, in alphabetical order: equal values are equal."""
    return urlencode(sorted(_filters(changelist).items()))


def kept_parameters(changelist: ChangeList) -> list[tuple[str, str]]:
    """Return the filters without a field in the panel, for the form to keep."""
    fields = {
        name
        for spec in changelist.filter_specs
        for name in (spec.expected_parameters() or [])
        if isinstance(spec, SimpleListFilter)
    }
    kept = _filters(changelist).items()
    return [(name, value) for name, value in kept if name == TAB or name not in fields]


def _active(changelist: ChangeList) -> Iterator[tuple[str, str, list[str]]]:
    """Yield title, value and parameters of each active filter."""
    params = changelist.params
    if changelist.query:
        yield "Search", changelist.query, [SEARCH_VAR]
    for each in changelist.list_filter:
        if not isinstance(each, type) or not issubclass(each, SimpleListFilter):
            continue
        name = str(each.parameter_name)
        if name != TAB and str(params.get(name, "")).strip():
            value = str(params[name])
            yield (
                str(each.title),
                marked_up_time(value) if issubclass(each, MomentFilter) else value,
                [name],
            )
    for spec in changelist.filter_specs:
        if isinstance(spec, FieldListFilter):
            names = [name for name in spec.expected_parameters() if name in params]
            if names:
                yield str(spec.title).capitalize(), _chosen(spec, changelist), names


def _chosen(spec: ListFilter, changelist: ChangeList) -> str:
    choices = spec.choices(changelist)
    return next((str(choice["display"]) for choice in choices if choice["selected"]), "")


def _filters(changelist: ChangeList) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in changelist.params.items()
        if name not in OF_PAGE and str(value)
    }


def _address(changelist: ChangeList, without: list[str]) -> str:
    """Return the list's address without some filters.

    Django's own method also removes the parameters beginning with any of the names.
    """
    kept = {name: text for name, text in _filters(changelist).items() if name not in without}
    return f"?{urlencode(kept)}"
