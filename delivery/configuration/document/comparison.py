"""Comparison of an entry with the row: the planned object, with the changed fields."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db.models import Model

from delivery.configuration.document.document import Section
from delivery.configuration.document.export import exported_value, plain_value
from delivery.configuration.document.plan import PlannedField, PlannedObject, Verb
from subscriptions.models import Publisher


def planned_creation(section: Section, values: Mapping[str, Any]) -> PlannedObject:
    """Return the new object, with the fields other than default."""
    columns = _columns(section.model)
    row = section.model(**{name: value for name, value in values.items() if name in columns})
    if isinstance(row, Publisher):
        row.all_event_types = values.get("event_types") is None
    defaults = {} if isinstance(row, Publisher) else _defaults(section.model, section.fields)
    fields = [
        PlannedField(name=name, before=None, after=plain_value(values[name]))
        for name in section.fields
        if name in values
        and name not in section.key
        and plain_value(values[name]) != defaults.get(name)
    ]
    return PlannedObject(section=section, verb=Verb.CREATE, row=row, values=values, fields=fields)


@cache
def _columns(model: type[Model]) -> frozenset[str]:
    return frozenset(field.name for field in model._meta.concrete_fields)


@cache
def _defaults(model: type[Model], names: tuple[str, ...]) -> dict[str, Any]:
    """Only to compare with: some are lists and objects."""
    return {
        name: model._meta.get_field(name).get_default()  # type: ignore[union-attr]
        for name in names
    }


def planned_change(section: Section, row: Model, values: Mapping[str, Any]) -> PlannedObject:
    """Return the stored object with the fields other than in the row; UNCHANGED without any."""
    given = [name for name in section.fields if name in values]
    both = [(name, exported_value(row, name), plain_value(values[name])) for name in given]
    fields = [
        PlannedField(name=name, before=before, after=after)
        for name, before, after in both
        if before != after
    ]
    verb = Verb.CHANGE if fields else Verb.UNCHANGED
    return PlannedObject(section=section, verb=verb, row=row, values=values, fields=fields)
