"""The form of a subscriber."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextareaWidget

from delivery.console.shared import header_lines
from delivery.console.shared.checked_form import CheckedForm
from subscriptions.checks import subscriber
from subscriptions.models import Subscriber
from subscriptions.values.header_values import HeaderError

_PASSWORD = Subscriber._meta.get_field("queue_password")


class SubscriberForm(CheckedForm[Subscriber]):
    places: ClassVar[Mapping[str, str]] = {"headers": "header_lines"}

    new_queue_password = forms.CharField(
        label="Queue password",
        required=False,
        strip=False,
        max_length=_PASSWORD.max_length,
        # Without a value in the page, and without a suggestion of the browser's.
        widget=UnfoldAdminPasswordWidget({"autocomplete": "new-password"}),
        help_text=f"{_PASSWORD.help_text} Leave the field empty to keep the password.",
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
        """Return the secrets reported as set in the configuration log."""
        headers = self.cleaned_data.get("header_lines")
        has_new_headers = bool(headers) and headers != self._headers_before
        has_new_password = bool(self.cleaned_data.get("new_queue_password"))
        return ["headers"] * has_new_headers + ["queue_password"] * has_new_password

    def clean_header_lines(self) -> dict[str, str]:
        try:
            return header_lines.parse_header_lines(
                self.cleaned_data["header_lines"], stored=self._headers_before
            )
        except HeaderError as error:
            raise ValidationError(str(error)) from error

    def given_values(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        values = super().given_values(cleaned)
        return values | {"headers": values["header_lines"]} if "header_lines" in values else values

    def refusals(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        return subscriber.refusals(values, stored=self.stored)

    def save(self, commit: bool = True) -> Subscriber:
        if password := self.cleaned_data.get("new_queue_password"):
            self.instance.queue_password = make_password(password)
        self.instance.headers = self.cleaned_data["header_lines"] or None
        return super().save(commit)
