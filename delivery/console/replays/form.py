"""The form of a replay: which messages, and at what rate.

The initial values are the subscription's.
"""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from delivery.console.shared.form_fields import (
    checked_filter,
    filter_field,
    rate_field,
)
from delivery.console.shared.moment_field import moment_field
from delivery.support.replays.requests import ReplayRequest
from subscriptions.models import Subscription


class ReplayForm(forms.Form):
    since = moment_field("Published since (UTC)")
    until = moment_field(
        "Published before (UTC)", required=False, help_text="Empty: everything archived so far."
    )
    event_types = forms.CharField(
        label="Event types, one per line",
        widget=UnfoldAdminTextareaWidget({"rows": 2, "spellcheck": "false"}),
    )
    header_filter_string = forms.CharField(
        label="FILTER_STRING header",
        required=False,
        max_length=1000,
        widget=UnfoldAdminTextInputWidget,
        help_text="Empty: any.",
    )
    filter = filter_field(
        "Filter", help_text="Initially the subscription's filter. Empty: every message."
    )
    rate = rate_field()

    def __init__(self, data: Any, *, subscription: Subscription) -> None:
        super().__init__(
            data,
            initial={
                "event_types": subscription.event_type.name,
                "header_filter_string": subscription.header_filter_string,
                "filter": subscription.filter,
            },
        )
        self.subscription = subscription

    def clean_event_types(self) -> list[str]:
        names = [
            line.strip() for line in self.cleaned_data["event_types"].splitlines() if line.strip()
        ]
        if not names:
            raise ValidationError("Name at least one event type.")
        return names

    def clean_filter(self) -> str:
        return checked_filter(self.cleaned_data["filter"])

    def replay_request(self) -> ReplayRequest:
        """Return the arguments of `request_replay`.

        All are explicit: the form starts with the subscription's own values, so none is left to
        them.
        """
        request: ReplayRequest = {
            "since": self.cleaned_data["since"],
            "until": self.cleaned_data["until"],
            "filter": self.cleaned_data["filter"],
            "header_filter_string": self.cleaned_data["header_filter_string"],
            "event_types": self.cleaned_data["event_types"],
            "rate": self.cleaned_data["rate"],
        }
        return request
