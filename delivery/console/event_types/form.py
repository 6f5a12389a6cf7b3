"""The form of an event type, with the same validation as the API."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from unfold.widgets import UnfoldAdminTextareaWidget

from delivery.console.shared.form_fields import HeaderPatterns
from subscriptions.filters import jsonb
from subscriptions.models import EventType
from subscriptions.values.json_schemas import JSONSchemaError, check_json_schema
from subscriptions.values.media_types import validate_media_type
from subscriptions.values.names import validate_unreserved


class JsonText(forms.JSONField):
    """JSON indented for people, with a member per line."""

    widget = UnfoldAdminTextareaWidget({"rows": 10, "class": "inturn-code", "spellcheck": "false"})

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


class EventTypeForm(forms.ModelForm[EventType]):
    sample = JsonText(
        required=False,
        help_text="A message as publishers send it. The filter tester uses it, "
        "and test messages start with it.",
    )
    json_schema = JsonText(
        label="JSON Schema",
        required=False,
        help_text="Messages that do not match this schema are rejected (422).",
    )

    forward_headers = HeaderPatterns(
        label="Forwarded headers",
        required=False,
        help_text="Headers of each message that new subscriptions forward by default: one per "
        "line, such as X-GitHub-Event, X-GitHub-* or *.",
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        validate_unreserved(name)
        return name

    def clean_content_type(self) -> str:
        content_type: str = self.cleaned_data["content_type"]
        validate_media_type(content_type)
        return content_type

    def clean_sample(self) -> Any:
        return _storable(self.cleaned_data["sample"])

    def clean_json_schema(self) -> Any:
        schema = _storable(self.cleaned_data["json_schema"])
        if schema is not None:
            try:
                check_json_schema(schema)
            except JSONSchemaError as error:
                raise ValidationError(str(error)) from error
        return schema


def _storable(value: Any) -> Any:
    if value is not None and jsonb.parse_jsonb(json.dumps(value).encode()) is jsonb.MISSING:
        raise ValidationError(
            "It contains a value that PostgreSQL cannot store: a NUL, half a surrogate pair, "
            "or too large a number."
        )
    return value
