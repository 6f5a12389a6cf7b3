"""The form of a report for auditors: which deliveries it lists, and in which format."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanWidget

from delivery.console.shared.form_fields import (
    SubscriptionField,
    checked_filter,
    filter_field,
    name_field,
)
from delivery.console.shared.moment_field import moment_field
from delivery.states import OPEN, Status

FORMATS = [("csv", "CSV, for spreadsheets"), ("parquet", "Parquet, for programs")]
SETTLED = [
    ("", "all settled deliveries"),
    *((status.value, status.value) for status in Status if status not in OPEN),
]


class ReportForm(forms.Form):
    """The form of a report.

    A user who may not see payloads gets neither bodies nor a filter, which would reveal their
    content.
    """

    since = moment_field("Settled since (UTC)")
    until = moment_field(
        "Settled before (UTC)", help_text="The report ends at the end of the archive."
    )
    subscriber = name_field("Subscriber")
    subscription = SubscriptionField()
    event_type = name_field("Event type")
    status = forms.ChoiceField(
        label="Status", required=False, choices=SETTLED, widget=UnfoldAdminSelectWidget
    )
    format = forms.ChoiceField(label="Format", choices=FORMATS, widget=UnfoldAdminSelectWidget)
    filter = filter_field("Filter", help_text="Only messages that match this filter. Empty: all.")
    with_bodies = forms.BooleanField(
        label="With the bodies of messages", required=False, widget=UnfoldBooleanWidget
    )

    def __init__(self, data: Any, *, initial: dict[str, Any], may_see_payload: bool) -> None:
        super().__init__(data, initial=initial)
        if not may_see_payload:
            del self.fields["filter"], self.fields["with_bodies"]

    def clean_filter(self) -> str:
        return checked_filter(self.cleaned_data["filter"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since >= until:
            raise ValidationError('"Before" must be after "since".')
        return cleaned

    def options(self) -> dict[str, Any]:
        """Return the options for the step, without empty options."""
        plain = {name: _plain(value) for name, value in self.cleaned_data.items()}
        return {name: value for name, value in plain.items() if value not in (None, "", False)}


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
