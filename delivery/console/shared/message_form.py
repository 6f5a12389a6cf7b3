"""The fields of a typed message: content type, body, headers."""

import json
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from delivery.console.shared.header_lines import parse_header_lines
from subscriptions.filters import header_name
from subscriptions.models import EventType
from subscriptions.values.header_values import HeaderError, is_sendable
from subscriptions.values.media_types import validate_media_type


class TypedMessageForm(forms.Form):
    """A message, at first the event type's sample."""

    content_type = forms.CharField(
        max_length=255,
        widget=UnfoldAdminTextInputWidget({"class": "inturn-code", "spellcheck": "false"}),
    )
    body = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(
            {"rows": 12, "class": "inturn-code", "spellcheck": "false"}
        ),
    )
    headers = forms.CharField(
        label="Headers of the message",
        required=False,
        widget=UnfoldAdminTextareaWidget(
            {"rows": 3, "class": "inturn-code", "spellcheck": "false"}
        ),
    )

    def __init__(self, data: Any, *, event_type: EventType, **first: str) -> None:
        initial = {"content_type": event_type.content_type, "body": _sample(event_type), **first}
        super().__init__(data, initial=initial)

    def clean_headers(self) -> dict[str, str]:
        try:
            typed = parse_header_lines(self.cleaned_data["headers"], stored={})
        except HeaderError as error:
            raise ValidationError(str(error)) from error
        headers = {header_name(name): value for name, value in typed.items()}
        for name, value in headers.items():
            if not is_sendable(name, value):
                raise ValidationError(
                    f"{name} is not a valid header name; use letters, digits and hyphens."
                )
        return headers

    def clean_content_type(self) -> str:
        content_type: str = self.cleaned_data["content_type"]
        validate_media_type(content_type)
        return content_type

    def clean_body(self) -> bytes:
        # Browsers send each line break as CR LF.
        typed: str = self.cleaned_data["body"].replace("\r\n", "\n")
        body = typed.encode(errors="replace")
        most = settings.ENVIRONMENT.max_message_bytes
        if len(body) > most:
            raise ValidationError(f"The body is longer than the limit of {most} bytes.")
        return body


def _sample(event_type: EventType) -> str:
    if event_type.sample is None:
        return '{"test": true}'
    return json.dumps(event_type.sample, indent=2, ensure_ascii=False)
