"""A field for a time in UTC; `static/console/times.js` shows the local time beside it."""

from datetime import datetime
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from subscriptions.values.times import with_plus


class MomentField(forms.DateTimeField):
    def to_python(self, value: Any) -> Any:
        return super().to_python(with_plus(value) if isinstance(value, str) else value)

    def prepare_value(self, value: Any) -> Any:
        """Return the format required by browsers for an input of type datetime-local."""
        shown = super().prepare_value(value)
        return f"{shown:%Y-%m-%dT%H:%M:%S}" if isinstance(shown, datetime) else shown


def moment_field(label: str, *, required: bool = True, help_text: str = "") -> MomentField:
    widget = UnfoldAdminTextInputWidget({"type": "datetime-local", "step": "1"})
    return MomentField(label=label, required=required, widget=widget, help_text=help_text)
