"""The fields of a subscription's form for extra headers and credentials.

Secrets can be entered, and are never shown.
"""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from delivery.console.shared import header_lines
from subscriptions.checks.moved_endpoint import SECRET_PARTS, kept_credentials, moved_refusals
from subscriptions.models import Subscription
from subscriptions.values.header_values import HeaderError, check_auth, check_headers

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
# The form's fields for the model's.
_FIELDS = {"auth": "auth_type", "headers": "header_lines"}
_KEPT = "Stored, never shown. Leave it empty to keep it."
# Also of other fields whose text is code.
MONOSPACE = {"class": "inturn-code", "spellcheck": "false"}


def _secret() -> forms.CharField:
    # Without a value in the page, and without a suggestion of the browser's.
    widget = UnfoldAdminPasswordWidget({"autocomplete": "new-password"})
    return forms.CharField(required=False, strip=False, widget=widget)


class SentHeaders(forms.ModelForm[Subscription]):
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

    def clean_sent_headers(self, cleaned: dict[str, Any]) -> None:
        """Give the instance the headers and credentials, or add the reason to refuse them."""
        try:
            headers = header_lines.parse_header_lines(
                cleaned.get("header_lines", ""), stored=self.instance.headers or {}
            )
            check_headers(headers)
        except HeaderError as error:
            self.add_error("header_lines", str(error))
            return
        auth = self._auth(cleaned)
        try:
            check_auth(
                auth, header_names=headers, forwards=bool(cleaned.get("forward_authorization"))
            )
        except HeaderError as error:
            self.add_error("auth_type", str(error))
            return
        if not self._takes_along(cleaned, {"headers": headers, "auth": auth}):
            return
        self.changed_secrets = [
            field
            for field, value in (("headers", headers), ("auth", auth))
            if value
            != (getattr(self.instance, field) or ({"type": "none"} if field == "auth" else {}))
        ]
        self.instance.headers, self.instance.auth = headers, auth

    def _takes_along(self, cleaned: dict[str, Any], values: dict[str, Any]) -> bool:
        """Return False, with the reasons, if a server would newly get stored credentials."""
        row = self.instance
        if row._state.adding and cleaned.get("subscriber"):
            row = Subscription(subscriber=cleaned["subscriber"])
        if not cleaned.get("endpoint") or row.subscriber_id is None:
            return True
        secrets = SECRET_PARTS.intersection(_AUTH_FIELDS.get(cleaned.get("auth_type", ""), ()))
        kept = kept_credentials(
            row,
            {"forward_authorization": cleaned.get("forward_authorization", False)} | values,
            is_auth_kept=any(not cleaned.get(secret) for secret in secrets),
            kept=header_lines.kept_names(cleaned.get("header_lines", "")),
        )
        refused = moved_refusals(row, cleaned["endpoint"], kept)
        for field, reason in refused.items():
            self.add_error(_FIELDS[field], reason)
        return not refused

    def _auth(self, cleaned: dict[str, Any]) -> dict[str, str]:
        """Return the credentials as typed; an empty secret keeps the stored secret."""
        chosen = cleaned.get("auth_type", "none")
        stored = self.instance.auth or {}
        typed = {
            field: cleaned.get(field) or stored.get(field, "")
            for field in _AUTH_FIELDS.get(chosen, ())
        }
        return {"type": chosen, **typed}
