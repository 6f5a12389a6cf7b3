"""The form of a subscription."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from delivery.console.shared.form_fields import HeaderPatterns
from delivery.console.subscriptions.sent_headers import MONOSPACE, SentHeaders
from subscriptions.checks import subscription
from subscriptions.checks.addresses import address_refusals
from subscriptions.checks.subscription import PUSH_ONLY
from subscriptions.checks.sync_overlap import conflicting_subscription, overlap_refusal
from subscriptions.models import (
    DedupMode,
    JoinMode,
    Mode,
    Policy,
    Subscription,
    SubscriptionStatus,
)
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.values.endpoints import parse_url

# With line numbers: static/console/script_editor.js.
EDITOR = {"rows": 12, "class": "inturn-code inturn-script", "spellcheck": "false"}


class SubscriptionForm(SentHeaders):
    """The fields that `SubscriptionAdmin.fieldsets` places.

    Only a new subscription's form has a status; without one, the subscription is ACTIVE.
    """

    class Meta:
        model = Subscription
        fields = "__all__"
        field_classes: ClassVar[dict[str, type[forms.Field]]] = {"forward_headers": HeaderPatterns}
        widgets: ClassVar[dict[str, forms.Widget]] = {
            "filter": UnfoldAdminTextareaWidget({"rows": 4} | MONOSPACE),
            "script": UnfoldAdminTextareaWidget(EDITOR),
            "endpoint": UnfoldAdminTextInputWidget(MONOSPACE),
            "probe_url": UnfoldAdminTextInputWidget(MONOSPACE),
            "dedup_path": UnfoldAdminTextInputWidget(MONOSPACE),
            "join_path": UnfoldAdminTextInputWidget(MONOSPACE),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and "mode" in self.fields:
            # Disabled rather than removed, because the value decides which other fields are shown.
            self.fields["mode"].disabled = True
            self.fields[
                "mode"
            ].help_text = "Cannot be changed. Create another subscription for the other mode."
        if "status" in self.fields:
            self.fields["status"].required = False
        if isinstance(script_field := self.fields.get("script"), forms.CharField):
            # Without the empty first lines the script would have other line numbers.
            script_field.strip = False

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        # The subscriber of a stored subscription is read-only, so Django leaves the constraint out.
        namesakes = Subscription.objects.filter(subscriber=self.instance.subscriber_id, name=name)
        if namesakes.exclude(pk=self.instance.pk).exists():
            text = (
                f"{self.instance.subscriber} already has a subscription {name}; "
                "choose another name."
            )
            raise ValidationError(text)
        return name

    def clean_script(self) -> str:
        # Browsers end lines with CR LF.
        text: str = self.cleaned_data["script"]
        return text.replace("\r\n", "\n")

    def clean_status(self) -> str:
        return self.cleaned_data["status"] or SubscriptionStatus.ACTIVE

    def clean(self) -> dict[str, Any]:
        self._forget_hidden_values(self.cleaned_data)
        cleaned = super().clean()
        if not self.errors:
            # Last, because it locks the event type.
            other = conflicting_subscription(cleaned, stored=self.stored)
            if other is not None:
                self.add_error("filter", overlap_refusal(other))
        if not self.errors and cleaned.get("probe_url"):
            cleaned["probe_url"] = parse_url(cleaned["probe_url"]).url
        return cleaned

    def given_values(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        if self.stored is None and "event_type" in cleaned:
            given = {name: value for name, value in cleaned.items() if value != []}
            cleaned |= subscription.completed(given, stored=None)
        return super().given_values(cleaned)

    def refusals(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        if self.stored is None and "event_type" not in values:
            return {}
        valid = {name: value for name, value in values.items() if name not in self.errors}
        return {
            **subscription.refusals(values, stored=self.stored),
            **address_refusals(valid),
            **super().refusals(values),
        }

    def _forget_hidden_values(self, cleaned: dict[str, Any]) -> None:
        """Clear the fields that the page hides, valid or not."""
        hidden: dict[str, Any] = {}
        if cleaned.get("mode") == Mode.PULL:
            hidden |= {name: unset for name, (unset, _) in PUSH_ONLY.items() if name in self.fields}
            hidden |= {"header_lines": "", "auth_type": "none"}
            hidden |= {"policy": Policy.objects.get(name=DEFAULT_POLICY)}
        elif cleaned.get("mode") == Mode.PUSH:
            hidden |= {"max_receives": None}
        if cleaned.get("dedup_mode", DedupMode.PATH) != DedupMode.PATH:
            hidden |= {"dedup_path": ""}
        if cleaned.get("join_mode") == JoinMode.NONE:
            hidden |= {"join_name": "", "join_path": ""}
        cleaned |= hidden
        for name in hidden:
            self.errors.pop(name, None)
