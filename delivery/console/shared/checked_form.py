"""A form that refuses the values that REST and a document refuse, at the same field."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model

from subscriptions.values.refusals import Refusal

Row = TypeVar("Row", bound=Model)


class CheckedForm(forms.ModelForm[Row]):
    """Labels, help and limits are the model's; its validators run before `refusals`.

    `places` has the form's fields for those of the model that have another name on the page.
    """

    places: ClassVar[Mapping[str, str]] = {}

    def given_values(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the model that the form gives."""
        return dict(cleaned)

    def refusals(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        """Return field → reason for given values that are refused together."""
        return {}

    @property
    def stored(self) -> Row | None:
        """The row before the change; None for a new one."""
        return None if self.instance._state.adding else self.instance

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        values = self.given_values(cleaned)
        for field in self._meta.model._meta.concrete_fields:
            try:
                if field.name in values:
                    field.run_validators(values[field.name])
            except ValidationError as error:
                self._refuse(field.name, error)
        for name, reason in self.refusals(values).items():
            self._refuse(name, reason)
        return cleaned

    def _refuse(self, name: str, reason: str | ValidationError) -> None:
        """Report a reason, unless the field has a more basic one already."""
        place: str | None = self.places.get(name, name)
        if place in self.errors:
            return
        if place not in self.fields:
            place = None
        elif isinstance(reason, Refusal) and reason.place:
            # static/console/script_editor.js marks the line.
            self.fields[place].widget.attrs["data-line"] = str(reason.place.line)
        self.add_error(place, reason)
