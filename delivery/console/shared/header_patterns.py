"""The field for header names that are forwarded."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget

from subscriptions.values.forwarding import checked_patterns
from subscriptions.values.header_values import HeaderError


class HeaderPatterns(forms.CharField):
    """Header names, or their beginnings followed by `*`, one per line.

    Commas separate them as well.
    """

    widget = UnfoldAdminTextareaWidget({"rows": 2, "class": "inturn-code", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        try:
            return checked_patterns(super().clean(value).replace(",", " ").split())
        except HeaderError as error:
            raise ValidationError(str(error)) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)
