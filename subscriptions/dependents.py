"""Rows which keep another from being deleted, not loaded, because there may be millions."""

from collections.abc import Collection

from django.db import models
from django.db.models.fields.reverse_related import ForeignObjectRel

from subscriptions.checks.common_script import includers
from subscriptions.models import CommonScript


def first_dependents(
    row: models.Model, *, apart_from: Collection[type[models.Model]] = ()
) -> str | None:
    """Return the words for rows which protect this row, such as their model's plural, or None."""
    if isinstance(row, CommonScript):
        # Scripts refer to it by name.
        found = includers(row.name)
        return f"scripts that include it ({found})" if found else None
    for relation in type(row)._meta.get_fields(include_hidden=True):
        if not isinstance(relation, ForeignObjectRel) or relation.on_delete is not models.PROTECT:
            continue
        model = relation.related_model
        assert not isinstance(model, str)
        if (
            model not in apart_from
            and model._base_manager.filter(**{relation.field.name: row}).exists()
        ):
            return str(model._meta.verbose_name_plural)
    return None
