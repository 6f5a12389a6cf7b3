"""List filters that compare whole values, so that an index finds them and the URL reads well."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from subscriptions.models import EventType, Subscriber

SUGGESTED_NAMES = 200


class _InputFilter(SimpleListFilter):
    """A filter that is typed; `lookup` is what it compares."""

    template = "console/input_filter.html"
    lookup: str
    input_attributes: dict[str, str] = {}

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
        form.fields[name] = forms.CharField(label=self.title, required=False, widget=self.widget(attributes))
        yield {"form": form, "suggestions": suggestions, "list_id": f"names-{name}"}

    def widget(self, attributes: dict[str, str]) -> forms.Widget:
        field: forms.Widget = UnfoldAdminTextInputWidget(attributes)
        return field

    def typed(self) -> str:
        return (self.value() or "").strip()


class ExactText(_InputFilter):
    """`?parameter_name=text` keeps the rows whose `lookup` is that text."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.lookup: self.typed()}) if self.typed() else queryset


class NameFilter(ExactText):
    """By the name of a configured thing; the first names are suggested."""

    named: type[Any]

    def suggestions(self) -> list[str]:
        return list(self.named.objects.order_by("name").values_list("name", flat=True)[:SUGGESTED_NAMES])


class SubscriberFilter(NameFilter):
    title = "Subscriber"
    parameter_name = "subscriber"
    lookup = "subscriber__name"
    named = Subscriber


class EventTypeFilter(NameFilter):
    title = "Event type"
    parameter_name = "event_type"
    lookup = "event_type__name"
    named = EventType


class MomentFilter(_InputFilter):
    """By a moment in UTC, such as `2026-08-02T10:15`; what is no moment filters nothing."""

    input_attributes = {"type": "datetime-local", "step": "1"}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        try:
            moment = datetime.fromisoformat(self.typed())
        except ValueError:
            return queryset
        return queryset.filter(**{self.lookup: moment if moment.tzinfo else moment.replace(tzinfo=UTC)})


class ChoiceFilter(_InputFilter):
    """By one of a closed set, from a drop-down; what is not in the set filters nothing."""

    offered: Sequence[str]

    def widget(self, attributes: dict[str, str]) -> forms.Widget:
        choices = [("", "all"), *((choice, choice) for choice in self.offered)]
        field: forms.Widget = UnfoldAdminSelectWidget(attributes, choices=choices)
        return field

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.lookup: self.typed()}) if self.typed() in self.offered else queryset
