"""The fields of a subscription's form for the choice of messages, with the status."""

from typing import Any

from django import forms

from subscriptions.checks import default_destination
from subscriptions.models import Subscription, SubscriptionStatus

CHOOSING = ("status", "header_filter_string", "filter", "takes_unmatched", "position")


class ChoiceOfMessages(forms.ModelForm[Subscription]):
    """Only a new subscription's form has a status; without a choice, the subscription is ACTIVE."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "status" in self.fields:
            self.fields["status"].required = False
            self.fields["status"].help_text = (
                "HELD: its messages are stored and wait. SHADOW: its matches are recorded, and "
                "never sent. INACTIVE: nothing matches."
            )

    def clean_status(self) -> str:
        return self.cleaned_data["status"] or SubscriptionStatus.ACTIVE

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        event_type = cleaned.get("event_type") or getattr(self.instance, "event_type", None)
        if event_type is not None:
            for field, reason in default_destination.destination_refusals(
                cleaned, event_type=event_type
            ).items():
                self.add_error(field, reason)
        return cleaned
