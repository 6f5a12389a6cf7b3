"""The form of a bulk job: which deliveries to resubmit or cancel, and at what rate."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminSelectWidget

from delivery.console.shared.form_fields import (
    ObjectNameField,
    SubscriptionField,
    name_field,
    rate_field,
)
from delivery.console.shared.moment_field import moment_field
from delivery.console.shared.times import exact
from delivery.models import BulkVerb
from delivery.models.message import parse_public_id, public_id
from delivery.support.selection import OFFERED
from subscriptions.models import EventType, Subscriber

_UNNAMED = {
    BulkVerb.RESUBMIT: "failed deliveries: rejected, 3xx, failed, expired",
    BulkVerb.CANCEL: "open deliveries: pending, in flight",
}
_ALL = {BulkVerb.RESUBMIT: "all failed deliveries", BulkVerb.CANCEL: "all open deliveries"}
_WORDS = {
    "subscriber": "of subscriber {}",
    "subscription": "of subscription {}",
    "event_type": "of event type {}",
    "message": "of {}",
    "since": "published since {}",
    "until": "published before {}",
}


class ResubmissionForm(forms.Form):
    """The form of a bulk job.

    The fields have the names of the list's filters, so a link can fill it.
    """

    status = forms.ChoiceField(label="Status", required=False, widget=UnfoldAdminSelectWidget)
    subscriber = ObjectNameField("Subscriber", Subscriber)
    subscription = SubscriptionField()
    event_type = ObjectNameField("Event type", EventType)
    message = name_field("Message")
    since = moment_field("Published since (UTC)", required=False)
    until = moment_field("Published until (UTC)", required=False)
    rate = rate_field()

    def __init__(self, data: Any, *, verb: BulkVerb) -> None:
        super().__init__(data)
        offered = [(status.value, status.value) for status in OFFERED[verb]]
        status = self.fields["status"]
        assert isinstance(status, forms.ChoiceField)
        status.choices = [("", _UNNAMED[verb]), *offered]

    def clean_message(self) -> int | None:
        typed: str = self.cleaned_data["message"].strip()
        if not typed:
            return None
        message_id = parse_public_id(typed)
        if message_id is None:
            raise ValidationError("Give the id of a message, msg_ and a number.")
        return message_id

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors and not self.chosen():
            raise ValidationError(
                "Choose at least one of status, subscriber and time of publication."
            )
        return cleaned

    @property
    def is_countable(self) -> bool:
        """True if the selection is valid, whether or not the rate is."""
        return self.is_bound and not set(self.errors) - {"rate"} and bool(self.chosen())

    def chosen(self) -> dict[str, Any]:
        """Return the selection in the form for `delivery.support.selection`."""
        status = self.cleaned_data.get("status")
        values = {name: _plain(self.cleaned_data.get(name)) for name in _WORDS}
        return ({"status": [status]} if status else {}) | {
            name: value for name, value in values.items() if value
        }


def _plain(value: Any) -> Any:
    """Return a datetime as JSON text, other values unchanged."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


def selection_in_words(chosen: Mapping[str, Any], verb: str) -> str:
    """Describe a selection in words: `REJECTED or FAILED, of subscriber crm`."""
    statuses = " or ".join(chosen.get("status", [])) or _ALL[BulkVerb(verb)]
    if "incident" in chosen:
        return f"failed deliveries of incident {chosen['incident']}"
    named = [
        words.format(_shown(name, chosen[name])) for name, words in _WORDS.items() if name in chosen
    ]
    return ", ".join([statuses, *named])


def _shown(name: str, value: Any) -> str:
    if name == "message":
        return public_id(value)
    if name in ("since", "until"):
        return exact(datetime.fromisoformat(value))
    return str(value)
