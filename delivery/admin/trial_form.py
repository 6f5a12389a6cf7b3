"""The form of a test message: the event type's sample, or what a person makes of it."""

import json
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from subscriptions.models import EventType
from subscriptions.values.media_types import validate_media_type


class TestMessageForm(forms.Form):
    """Anything may be sent, also what publishing would refuse: an endpoint should bear it."""

    # Not a test of ours, as pytest would take it to be.
    __test__ = False

    content_type = forms.CharField(
        max_length=255, widget=UnfoldAdminTextInputWidget({"class": "inturn-code", "spellcheck": "false"})
    )
    body = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget({"rows": 12, "class": "inturn-code", "spellcheck": "false"}),
    )

    def __init__(self, data: Any, *, event_type: EventType) -> None:
        first = {"content_type": event_type.content_type, "body": _sample(event_type)}
        super().__init__(data, initial=first)

    def clean_content_type(self) -> str:
        content_type: str = self.cleaned_data["content_type"]
        validate_media_type(content_type)
        return content_type

    def clean_body(self) -> bytes:
        # Browsers send each line break as two characters.
        typed: str = self.cleaned_data["body"].replace("\r\n", "\n")
        body = typed.encode(errors="replace")
        most = settings.ENVIRONMENT.max_message_bytes
        if len(body) > most:
            raise ValidationError(f"It is longer than the {most} bytes that a message may have.")
        return body


def _sample(event_type: EventType) -> str:
    if event_type.sample is None:
        return '{"test": true}'
    return json.dumps(event_type.sample, indent=2, ensure_ascii=False)
