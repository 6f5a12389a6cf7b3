"""The form of a subscription."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from delivery.console.shared.form_fields import HeaderPatterns
from delivery.console.subscriptions.choice_of_messages import CHOOSING, ChoiceOfMessages
from delivery.console.subscriptions.sent_headers import MONOSPACE, SentHeaders
from subscriptions.checks import dedup, joins, mode, script
from subscriptions.checks.sync_overlap import conflicting_subscription, overlap_refusal
from subscriptions.filters import FilterError, parse_filter
from subscriptions.models import DedupMode, EventType, JoinMode, Mode, Policy, Subscription
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.values.addresses import AddressRefusedError
from subscriptions.values.built_in_receivers import built_in_receivers
from subscriptions.values.endpoints import INTERNAL, EndpointError, check_endpoint, parse_url
from subscriptions.values.names import validate_subscribable

_DEDUP = (
    "A repeat is a DUPLICATE and is not sent. A repeat that arrives before the first is settled is "
    "IN_DOUBT: a person decides."
)
_JOIN = (
    "Messages with the same activation id, of several subscriptions of this "
    "subscriber with the same join name."
)
_SCRIPT = (
    "JavaScript (ES5). TOPIC: turns each message into the request: it reads $inmessage, $intext "
    "and $inheader, and sets $outmessage, $param, $outheader. SYNC with the endpoint webr://: "
    "makes the answer, $outmessage and $statuscode."
)
# With line numbers: static/console/script_editor.js.
EDITOR = {"rows": 12, "class": "inturn-code inturn-script", "spellcheck": "false"}


class SubscriptionForm(SentHeaders, ChoiceOfMessages):
    forward_headers = HeaderPatterns(
        label="Headers of the message",
        required=False,
        help_text="Forwarded headers, one per line: X-GitHub-Event, X-GitHub-* or * for all. "
        "Empty: a new subscription takes those of its event type; an existing one forwards none.",
    )

    class Meta:
        model = Subscription
        fields = [
            "name",
            "subscriber",
            "event_type",
            "mode",
            "endpoint",
            *CHOOSING,
            "script",
            "policy",
            "forward_headers",
            "forward_authorization",
            "timeout_seconds",
            "lets_pass_on_timeout",
            "probe_url",
            "max_receives",
            "dedup_mode",
            "dedup_path",
            "dedup_window_seconds",
            "join_mode",
            "join_name",
            "join_path",
            "join_seconds",
        ]
        labels = {
            "probe_url": "Probe URL",
            "forward_authorization": "Forward the publisher's credential",
            "lets_pass_on_timeout": "Without a response: return 200",
        }
        help_texts = {
            "lets_pass_on_timeout": "SYNC: without a response in time the publisher gets 200 and "
            "an empty body, instead of 504 or 502.",
            "probe_url": "Polled with GET while the lane is suspended; a 2xx resumes the lane.",
            "script": _SCRIPT,
            "max_receives": "A message fetched this often and never acknowledged is FAILED. Empty: "
            "it returns until it expires.",
            "dedup_mode": _DEDUP,
            "dedup_path": "Path to the value that identifies a message, e.g. $$->'Body'->>'id'.",
            "dedup_window_seconds": "Time in which a repeated message counts as a duplicate; "
            "259200 are three days.",
            "join_mode": _JOIN,
        }
        widgets = {
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

    def clean_endpoint(self) -> str:
        endpoint: str = self.cleaned_data["endpoint"]
        if endpoint and endpoint != INTERNAL:
            _check_address(endpoint)
        return endpoint

    def clean_event_type(self) -> EventType:
        event_type: EventType = self.cleaned_data["event_type"]
        validate_subscribable(event_type.name)
        return event_type

    def clean_probe_url(self) -> str:
        text: str = self.cleaned_data["probe_url"]
        if not text:
            return ""
        _check_address(text)
        try:
            return parse_url(text).url
        except EndpointError as error:
            raise ValidationError(str(error)) from error

    def clean_filter(self) -> str:
        text: str = self.cleaned_data["filter"]
        if text:
            try:
                parse_filter(text)
            except FilterError as error:
                raise ValidationError(str(error)) from error
        return text

    def clean_script(self) -> str:
        # Browsers end lines with CR LF.
        text: str = self.cleaned_data["script"].replace("\r\n", "\n")
        if fault := script.fault(text):
            if fault.line is not None and not fault.source:
                self.fields["script"].widget.attrs["data-line"] = str(fault.line)
            raise ValidationError(str(fault))
        return text

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("mode") == Mode.PULL:
            self._drop_hidden_values(cleaned)
        self._take_patterns_of_event_type(cleaned)
        self._clean_mode(cleaned)
        self.clean_sent_headers(cleaned)
        self._clean_dedup(cleaned)
        self._clean_join(cleaned)
        if not self.errors:
            self._clean_sync_overlap(cleaned)
        return cleaned

    def _take_patterns_of_event_type(self, cleaned: dict[str, Any]) -> None:
        event_type = cleaned.get("event_type")
        is_new_push = self.instance._state.adding and cleaned.get("mode") == Mode.PUSH
        if is_new_push and event_type is not None and not cleaned.get("forward_headers"):
            cleaned["forward_headers"] = self.instance.forward_headers = event_type.forward_headers

    def _clean_dedup(self, cleaned: dict[str, Any]) -> None:
        event_type = cleaned.get("event_type") or getattr(self.instance, "event_type", None)
        if event_type is None or not {"dedup_mode", "dedup_path"} <= set(cleaned):
            return
        if cleaned["dedup_mode"] != DedupMode.PATH:
            # The page hides the path then.
            cleaned["dedup_path"] = ""
        refused = dedup.dedup_refusals(cleaned, event_type=event_type)
        try:
            if cleaned["dedup_path"]:
                dedup.check_path(cleaned["dedup_path"])
        except FilterError as error:
            refused["dedup_path"] = str(error)
        for field, reason in refused.items():
            self.add_error(field, reason)

    def _clean_join(self, cleaned: dict[str, Any]) -> None:
        event_type = cleaned.get("event_type") or getattr(self.instance, "event_type", None)
        if event_type is None or not {"join_mode", "join_name", "join_path", "mode"} <= set(
            cleaned
        ):
            return
        if cleaned["join_mode"] == JoinMode.NONE:
            # The page hides the others then.
            cleaned |= {"join_name": "", "join_path": ""}
        for field, reason in joins.join_refusals(cleaned, event_type=event_type).items():
            self.add_error(field, reason)

    def _clean_sync_overlap(self, cleaned: dict[str, Any]) -> None:
        """Refuse a conflict; runs last, because it locks the event type.

        See `subscriptions.checks.sync_overlap`.
        """
        other = conflicting_subscription(
            cleaned.get("event_type") or self.instance.event_type,
            header_filter_string=cleaned["header_filter_string"],
            filter_text=cleaned["filter"],
            excluding=self.instance,
        )
        if other is not None:
            self.add_error("filter", overlap_refusal(other))

    def _drop_hidden_values(self, cleaned: dict[str, Any]) -> None:
        """Clear the fields of the other mode, valid or not, because the page hides them."""
        hidden = {name: unset for name, (unset, _) in mode.PUSH_ONLY.items() if name in self.fields}
        policy = Policy.objects.get(name=DEFAULT_POLICY)
        cleaned |= hidden | {"header_lines": "", "auth_type": "none", "policy": policy}
        for name in (*hidden, "header_lines", "auth_type", "policy"):
            self.errors.pop(name, None)

    def _clean_mode(self, cleaned: dict[str, Any]) -> None:
        event_type = cleaned.get("event_type") or getattr(self.instance, "event_type", None)
        if event_type is None or not {"mode", "endpoint"} <= set(cleaned):
            return
        if cleaned["mode"] == Mode.PUSH:
            # The page hides this field as well.
            cleaned["max_receives"] = None
            self.errors.pop("max_receives", None)
        for field, reason in mode.mode_refusals(cleaned, event_type=event_type).items():
            self.add_error(field, reason)
        if "script" in cleaned and not {"endpoint", "script"} & set(self.errors):
            for field, reason in script.script_refusals(cleaned, event_type=event_type).items():
                self.add_error(field, reason)


def _check_address(url: str) -> None:
    try:
        check_endpoint(
            url,
            allowed_networks=settings.ENVIRONMENT.allowed_networks,
            built_in_receivers=built_in_receivers(settings.ENVIRONMENT.base_url),
        )
    except (EndpointError, AddressRefusedError) as error:
        raise ValidationError(str(error)) from error
