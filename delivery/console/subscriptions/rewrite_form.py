"""The form for the URLs to rewrite, with the old and the new beginning."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from subscriptions.models import Mode, Subscription, SubscriptionStatus
from subscriptions.rewriting import Replacement, RewriteError
from subscriptions.values.names import MAX_NAME_LENGTH

_COLUMNS = {
    "subscriber": "subscriber__name",
    "event_type": "event_type__name",
    "policy": "policy__name",
    "status": "status",
}


def _url(label: str, example: str) -> forms.CharField:
    attributes = {"class": "inturn-code", "spellcheck": "false", "placeholder": example}
    return forms.CharField(
        label=label, max_length=2000, widget=UnfoldAdminTextInputWidget(attributes)
    )


def _name(label: str) -> forms.CharField:
    return forms.CharField(
        label=label, required=False, max_length=MAX_NAME_LENGTH, widget=UnfoldAdminTextInputWidget
    )


class RewriteForm(forms.Form):
    """Fields are named after the list's filters, so a link can pass those on."""

    old = _url("Old beginning", "https://old.example/")
    new = _url("New beginning", "https://new.example/")
    subscriber = _name("Subscriber")
    event_type = _name("Event type")
    policy = _name("Policy")
    status = forms.ChoiceField(
        choices=[("", "all"), *((status, status) for status in SubscriptionStatus.values)],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )

    with_credentials = forms.BooleanField(
        label="Stored credentials: the new servers get them too",
        required=False,
        widget=UnfoldBooleanWidget,
    )

    def __init__(self, *args: Any, may_keep: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_keep:
            del self.fields["with_credentials"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                cleaned["replacement"] = Replacement(
                    old=cleaned["old"],
                    new=cleaned["new"],
                    with_credentials=cleaned.get("with_credentials", False),
                )
            except RewriteError as error:
                raise ValidationError(str(error)) from error
        return cleaned

    def selected(self) -> QuerySet[Subscription]:
        wanted = {column: self.cleaned_data[name] for name, column in _COLUMNS.items()}
        return Subscription.objects.filter(
            mode=Mode.PUSH, **{column: value for column, value in wanted.items() if value}
        )
