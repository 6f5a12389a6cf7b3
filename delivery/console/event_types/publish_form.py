"""The form to publish a message of an event type: as a publisher, and only once."""

import re
import secrets
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q
from unfold.widgets import UnfoldAdminSelectWidget

from delivery.console.shared.message_form import TypedMessageForm
from delivery.publishing.drafts import Draft, takes_json
from subscriptions.models import EventType, Publisher
from subscriptions.values.header_values import HOP_BY_HOP, MAX_VALUE_LENGTH
from subscriptions.values.media_types import is_json, media_type

SHOWN_PUBLISHERS = 1000
_MOST_HEADERS = 50
# Fields of the form, and headers not stored by publishing either.
_NOT_TYPED = HOP_BY_HOP | {
    *("content-type", "content-length", "content-encoding", "host", "expect"),
    *("cookie", "authorization", "proxy-authorization", "idempotency-key"),
}
_ONCE = re.compile(r"[A-Za-z0-9_-]{20,40}")


class PublishForm(TypedMessageForm):
    """The fields of the message, and the publisher in whose name it is published.

    `once` becomes the idempotency key: a form sent twice publishes a single message.
    """

    publisher = forms.ModelChoiceField(
        queryset=Publisher.objects.none(), widget=UnfoldAdminSelectWidget, empty_label=None
    )
    once = forms.CharField(widget=forms.HiddenInput)
    field_order = ["publisher", "body", "content_type", "headers"]

    def __init__(self, data: Any, *, event_type: EventType) -> None:
        super().__init__(data, event_type=event_type, once=secrets.token_urlsafe(18))
        self._event_type = event_type
        # So the button is in view without scrolling.
        self.fields["body"].widget.attrs["rows"] = 8
        self.fields["headers"].help_text = (
            "One per line: Name: value. FILTER_STRING, Destination, CallbackURL and ErrorsTo mean "
            "what they mean by REST."
        )
        allowed: Any = self.fields["publisher"]
        allowed.queryset = publishers_of(event_type)

    @property
    def draft(self) -> Draft:
        typed = self.cleaned_data
        return Draft(
            event_type=self._event_type,
            headers={"content-type": typed["content_type"], **typed["headers"]},
            body=typed["body"],
            content_type=typed["content_type"],
            idempotency_key=f"console-{typed['once']}",
        )

    def clean_once(self) -> str:
        once: str = self.cleaned_data["once"]
        if not _ONCE.fullmatch(once):
            raise ValidationError("Open this page again.")
        return once

    def clean_content_type(self) -> str:
        content_type = super().clean_content_type()
        declared = self._event_type.content_type
        if not takes_json(self._event_type) or is_json(content_type):
            return content_type
        if media_type(content_type) == media_type(declared):
            return content_type
        raise ValidationError(f"Messages of {self._event_type} are JSON: write application/json.")

    def clean_headers(self) -> dict[str, str]:
        headers = super().clean_headers()
        if len(headers) > _MOST_HEADERS:
            raise ValidationError(f"At most {_MOST_HEADERS} headers.")
        for name, value in headers.items():
            if name in _NOT_TYPED:
                raise ValidationError(f"{name} is not stored with a message; leave it out.")
            if len(value) > MAX_VALUE_LENGTH:
                raise ValidationError(f"{name}: at most {MAX_VALUE_LENGTH} characters.")
        return headers


def publishers_of(event_type: EventType) -> Any:
    """Return the publishers that may publish it; those to which it is granted by name first."""
    granted = Q(event_types=event_type)
    rows = Publisher.objects.filter(Q(all_event_types=True) | granted).distinct()
    return rows.order_by("all_event_types", "name")
