"""The form of an event type."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from unfold.widgets import UnfoldAdminTextareaWidget

from delivery.console.shared.checked_form import CheckedForm
from delivery.console.shared.form_fields import HeaderPatterns
from subscriptions.checks import event_type
from subscriptions.models import EventType


class JsonText(forms.JSONField):
    """JSON indented for people, with a member per line."""

    def __init__(self, *, widget: object = None, **options: Any) -> None:
        # Instead of the console's widget of JSON.
        del widget
        super().__init__(
            widget=UnfoldAdminTextareaWidget(
                {"rows": 10, "class": "inturn-code", "spellcheck": "false"}
            ),
            **options,
        )

    def prepare_value(self, value: Any) -> Any:
        if value is None or isinstance(value, InvalidJSONInput):
            return value
        return json.dumps(value, ensure_ascii=False, indent=2)

    def to_python(self, value: Any) -> Any:
        """Return the parsed text; the error says where it is not JSON."""
        try:
            return super().to_python(value)
        except ValidationError as error:
            cause = error.__context__
            if not isinstance(cause, json.JSONDecodeError):
                raise
            raise ValidationError(
                f"This is not JSON: {cause.msg}, line {cause.lineno}, column {cause.colno}.",
                code="invalid",
            ) from error


class EventTypeForm(CheckedForm[EventType]):
    class Meta:
        field_classes: ClassVar[dict[str, type[forms.Field]]] = {
            "sample": JsonText,
            "json_schema": JsonText,
            "forward_headers": HeaderPatterns,
        }

    def refusals(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        return event_type.refusals(values, stored=self.stored)
