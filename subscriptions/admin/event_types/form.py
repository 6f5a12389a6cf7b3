"""Configuration forms with the same validation as the API."""

import json
from typing import Any

from django import forms
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextareaWidget

from subscriptions.admin.subscriptions import header_lines
from subscriptions.filters import jsonb
from subscriptions.matching.destinations import UnknownDestinationError
from subscriptions.matching.errors_to import check_errors_to
from subscriptions.models import EventType, Publisher, Subscriber
from subscriptions.values.forwarding import checked_patterns
from subscriptions.values.header_values import HeaderError, check_headers
from subscriptions.values.json_schemas import JSONSchemaError, check_json_schema
from subscriptions.values.media_types import validate_media_type
from subscriptions.values.names import validate_unreserved


class JsonText(forms.JSONField):
    """JSON indented for people, with one member per line."""

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


class PublisherForm(forms.ModelForm[Publisher]):
    def clean_errors_to(self) -> str:
        errors_to: str = self.cleaned_data["errors_to"]
        try:
            check_errors_to(errors_to)
        except UnknownDestinationError as unknown:
            raise ValidationError(unknown.detail) from None
        return errors_to


class SubscriberForm(forms.ModelForm[Subscriber]):
    new_queue_password = forms.CharField(
        label="Queue password",
        required=False,
        strip=False,
        max_length=200,
        # Without a value in the page, and without a suggestion of the browser's.
        widget=UnfoldAdminPasswordWidget({"autocomplete": "new-password"}),
        help_text="For clients without a fetch key: their old password, used with the subscriber's "
        "name. Stored as a hash, never shown. Leave it empty to keep it.",
    )

    header_lines = forms.CharField(
        label="Headers",
        required=False,
        widget=UnfoldAdminTextareaWidget(
            {"rows": 3, "class": "inturn-code", "spellcheck": "false"}
        ),
        help_text="Sent with each delivery of all of its subscriptions, one per line: Name: value. "
        "A subscription's own header of that name is sent instead. Stored values are shown as •••; "
        "leave ••• to keep a value.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headers_before: dict[str, str] = self.instance.headers or {}
        self.initial["header_lines"] = header_lines.masked_lines(self._headers_before)

    @property
    def changed_secrets(self) -> list[str]:
        """Return the secrets that the configuration log reports as set."""
        headers = self.cleaned_data.get("header_lines")
        has_new_headers = bool(headers) and headers != self._headers_before
        has_new_password = bool(self.cleaned_data.get("new_queue_password"))
        return ["headers"] * has_new_headers + ["queue_password"] * has_new_password

    def clean_header_lines(self) -> dict[str, str]:
        try:
            headers = header_lines.parse_header_lines(
                self.cleaned_data["header_lines"], stored=self._headers_before
            )
            check_headers(headers)
        except HeaderError as error:
            raise ValidationError(str(error)) from error
        return headers

    def save(self, commit: bool = True) -> Subscriber:
        if password := self.cleaned_data.get("new_queue_password"):
            self.instance.queue_password = make_password(password)
        self.instance.headers = self.cleaned_data["header_lines"] or None
        return super().save(commit)


def _storable(value: Any) -> Any:
    if value is not None and jsonb.parse_jsonb(json.dumps(value).encode()) is jsonb.MISSING:
        raise ValidationError(
            "It contains a value that PostgreSQL cannot store: a NUL, half a surrogate pair, "
            "or too large a number."
        )
    return value
