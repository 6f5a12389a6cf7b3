"""The fields of a subscription's form for extra headers and credentials.

Secrets can be entered, and are never shown.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from delivery.console.shared import header_lines
from delivery.console.shared.checked_form import CheckedForm
from subscriptions.checks.moved_endpoint import SECRET_PARTS, kept_credentials, moved_refusals
from subscriptions.models import Subscription
from subscriptions.values.header_values import HeaderError

_AUTH_TYPES = [
    ("none", "none"),
    ("basic", "basic: user and password"),
    ("bearer", "bearer: a token"),
]
_AUTH_FIELDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "basic": ("username", "password"),
    "bearer": ("token",),
}
_KEPT = "Stored, never shown. Leave it empty to keep it."
# Also of other fields whose text is code.
MONOSPACE = {"class": "inturn-code", "spellcheck": "false"}


def _secret() -> forms.CharField:
    # Without a value in the page, and without a suggestion of the browser's.
    widget = UnfoldAdminPasswordWidget({"autocomplete": "new-password"})
    return forms.CharField(required=False, strip=False, widget=widget)


class SentHeaders(CheckedForm[Subscription]):
    places: ClassVar[Mapping[str, str]] = {"auth": "auth_type", "headers": "header_lines"}

    header_lines = forms.CharField(
        label="Headers",
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 3} | MONOSPACE),
        help_text="Extra headers, one per line: Name: value. Stored values are shown as •••; "
        "leave ••• to keep a value.",
    )
    auth_type = forms.ChoiceField(label="Auth", choices=_AUTH_TYPES, widget=UnfoldAdminSelectWidget)
    username = forms.CharField(
        required=False, widget=UnfoldAdminTextInputWidget({"autocomplete": "off"})
    )
    password = _secret()
    token = _secret()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.changed_secrets: list[str] = []
        stored = self.instance.auth or {}
        if "header_lines" in self.fields:
            self.initial["header_lines"] = header_lines.masked_lines(self.instance.headers or {})
            self.initial["auth_type"] = stored.get("type", "none")
            self.initial["username"] = stored.get("username", "")
            for secret in ("password", "token"):
                self.fields[secret].help_text = _KEPT if secret in stored else ""

    def clean_header_lines(self) -> str:
        """Keep the text, which says which values stay; raise for lines that are no headers."""
        text: str = self.cleaned_data["header_lines"]
        try:
            header_lines.parse_header_lines(text, stored=self.instance.headers or {})
        except HeaderError as error:
            raise ValidationError(str(error)) from None
        return text

    def given_values(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        values = super().given_values(cleaned)
        if "header_lines" in cleaned:
            values["headers"] = header_lines.parse_header_lines(
                cleaned["header_lines"], stored=self.instance.headers or {}
            )
        if "auth_type" in cleaned:
            values["auth"] = self._auth(cleaned)
        return values

    def refusals(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse stored credentials at a server that would newly get them."""
        row = self.stored or Subscription(subscriber=values.get("subscriber"))
        if not values.get("endpoint") or row.subscriber_id is None:
            return {}
        typed = self.cleaned_data
        secrets = SECRET_PARTS.intersection(_AUTH_FIELDS.get(typed.get("auth_type", ""), ()))
        kept = kept_credentials(
            row,
            values,
            is_auth_kept=any(not typed.get(secret) for secret in secrets),
            kept=header_lines.kept_names(typed.get("header_lines", "")),
        )
        return moved_refusals(row, values["endpoint"], kept)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        values = {} if self.errors else self.given_values(cleaned)
        for field in ("headers", "auth"):
            before = getattr(self.instance, field) or ({"type": "none"} if field == "auth" else {})
            if values.get(field, before) != before:
                self.changed_secrets.append(field)
            if field in values:
                setattr(self.instance, field, values[field])
        return cleaned

    def _auth(self, cleaned: dict[str, Any]) -> dict[str, str]:
        """Return the credentials as typed; an empty secret keeps the stored secret."""
        chosen = cleaned.get("auth_type", "none")
        stored = self.instance.auth or {}
        typed = {
            field: cleaned.get(field) or stored.get(field, "")
            for field in _AUTH_FIELDS.get(chosen, ())
        }
        return {"type": chosen, **typed}
