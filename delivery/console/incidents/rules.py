"""The rules of incidents in the console: bounds, and who gets mail and chat."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminTextareaWidget

from delivery.console.shared.labels import label
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.models import IncidentKind, IncidentRule
from subscriptions.values.addresses import AddressRefusedError
from subscriptions.values.endpoints import EndpointError, check_endpoint, parse_url
from subscriptions.values.shown_addresses import masked_address, named_secret_address

# The meaning of a kind's bound; kinds without a bound in the table have none.
BOUNDS: Mapping[str, str] = {
    IncidentKind.RETRYING: "Deliveries of a subscription that wait for their next attempt.",
    IncidentKind.FAILURES: "Failed deliveries of a subscription by one cause.",
    IncidentKind.IN_DOUBT: "Seconds for which a delivery is IN_DOUBT.",
    IncidentKind.OLDEST: "Age of the oldest message of a moving lane, in seconds.",
    IncidentKind.BACKLOG: "Deliveries that wait in lanes.",
    IncidentKind.PIPELINE: "Runs of a step that FAILED in a row.",
    IncidentKind.DISK: "Free share of the disk in percent, at least.",
    IncidentKind.DATABASE: "Size of the database in GB.",
}
MOST_RECIPIENTS = 20


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    def __init__(self, *, label: str, help_text: str) -> None:
        widget = UnfoldAdminTextareaWidget({"rows": 3})
        super().__init__(label=label, help_text=help_text, required=False, widget=widget)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        lines = [line.strip() for line in str(value or "").splitlines() if line.strip()]
        if len(lines) > MOST_RECIPIENTS:
            raise ValidationError(f"Give at most {MOST_RECIPIENTS}.")
        return list(dict.fromkeys(lines))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool((initial or []) != self.to_python(data))


class IncidentRuleForm(forms.ModelForm[IncidentRule]):
    mail_to = LinesField(
        label="Mail to",
        help_text="An address a line. Empty: the addresses in INTURN_MAIL_TO.",
    )
    chat_urls = LinesField(
        label="Chat webhooks",
        help_text="A URL a line, as Slack, Mattermost or Teams gives it. Stored ones are shown by "
        "host, last characters and a mark; leave such a line to keep the URL.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "bound" in self.fields:
            self.fields["bound"].help_text = BOUNDS.get(self.instance.kind, "")
        self.changed_secrets: list[str] = []
        self.initial["chat_urls"] = chats_in_words(self.instance)

    def clean_mail_to(self) -> list[str]:
        addresses: list[str] = self.cleaned_data["mail_to"]
        for address in addresses:
            validate_email(address)
        return addresses

    def clean_chat_urls(self) -> list[str]:
        """Return the typed and the kept URLs.

        Refuse those to addresses forbidden for endpoints.
        """
        stored = self.instance.chat_urls
        urls: list[str] = []
        for line in self.cleaned_data["chat_urls"]:
            urls += [url for url in stored if named_secret_address(url) == line] or [line]
        for url in set(urls) - set(stored):
            try:
                parse_url(url)
                check_endpoint(url, allowed_networks=settings.ENVIRONMENT.allowed_networks)
            except (EndpointError, AddressRefusedError) as error:
                raise ValidationError(f"{masked_address(url)}: {error}") from error
        self.changed_secrets = ["chat_urls"] if urls != stored else []
        return urls

    def clean_bound(self) -> float | None:
        bound: float | None = self.cleaned_data["bound"]
        if self.instance.kind in BOUNDS and (bound is None or bound < 0):
            raise ValidationError("Give a number, 0 or more.")
        return bound


def chats_in_words(rule: IncidentRule) -> list[str]:
    """Return the URLs of chats as everybody sees them: they are secrets."""
    return [named_secret_address(url) for url in rule.chat_urls]


@admin.register(IncidentRule)
class IncidentRuleAdmin(RecordedAdmin):
    form = IncidentRuleForm
    list_display = ["named", "is_on_label", "opens", "closes", "bound_in_words", "notified"]
    sortable_by = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: IncidentRule | None = None) -> list[Any]:
        bound = ["bound"] if obj is not None and obj.kind in BOUNDS else []
        chats = "chat_urls" if self.has_change_permission(request, obj) else "chats"
        return ["is_on", "after_seconds", "quiet_seconds", *bound, "mail_to", chats]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["chats"]

    @admin.display(description="chat webhooks")
    def chats(self, row: IncidentRule) -> str:
        return ", ".join(chats_in_words(row)) or "–"

    @admin.display(description="rule")
    def named(self, row: IncidentRule) -> str:
        return capfirst(str(row))

    @admin.display(description="state")
    def is_on_label(self, row: IncidentRule) -> SafeString:
        return label("on", tone="good") if row.is_on else label("off", tone="neutral")

    @admin.display(description="opens after")
    def opens(self, row: IncidentRule) -> str:
        return f"{row.after_seconds:,} s"

    @admin.display(description="closes after")
    def closes(self, row: IncidentRule) -> str:
        return f"{row.quiet_seconds:,} s"

    @admin.display(description="bound")
    def bound_in_words(self, row: IncidentRule) -> str:
        return f"{row.bound:,g}" if row.kind in BOUNDS and row.bound is not None else "–"

    @admin.display(description="notified")
    def notified(self, row: IncidentRule) -> str:
        chats = len(row.chat_urls)
        mail = row.mail_to or settings.ENVIRONMENT.mail.to
        texts = [*mail, *([f"{chats} chat{'s' if chats > 1 else ''}"] if chats else [])]
        return ", ".join(texts) or "nobody"
