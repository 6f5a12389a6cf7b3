"""Subscriptions in the console, without their deliveries.

`delivery.console.subscriptions.admin` adds those and registers the page.
"""

from copy import copy
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.safestring import SafeString

from subscriptions.admin.shared.addresses import with_shown_addresses
from subscriptions.admin.shared.cells import ForwardedNames, lines
from subscriptions.admin.shared.list_filters import (
    EventTypeFilter,
    NameFilter,
    SubscriberFilter,
    choice_filter,
)
from subscriptions.admin.shared.one_time_secret import show_once
from subscriptions.admin.shared.recorded_admin import RecordedAdmin
from subscriptions.admin.subscriptions.form import SubscriptionForm
from subscriptions.admin.subscriptions.rewriting import EndpointRewriting
from subscriptions.admin.subscriptions.secrets import VERIFYING, SecretsOfSubscription, page_of
from subscriptions.checks.twins import twin_warning
from subscriptions.models import Mode, Policy, SigningSecret, Subscription, SubscriptionStatus
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.values.shown_addresses import masked_address

_OF_PUSH = (
    "endpoint",
    "policy",
    "probe_url",
    "timeout_seconds",
    "lets_pass_on_timeout",
    "script",
    "header_lines",
    "forward_headers",
    "forward_authorization",
    "auth_type",
)
_TYPED = ("header_lines", "auth_type", "username", "password", "token")


class PolicyFilter(NameFilter):
    title = "Policy"
    parameter_name = "policy"
    lookup = "policy"
    named = Policy


class BaseSubscriptionAdmin(
    ForwardedNames, SecretsOfSubscription, EndpointRewriting, RecordedAdmin
):
    form = SubscriptionForm
    list_display = ["full_name", "wants", "goes_to"]
    list_filter = [
        choice_filter("Status", "status", SubscriptionStatus.values),
        choice_filter("Mode", "mode", Mode.values),
        SubscriberFilter,
        EventTypeFilter,
        PolicyFilter,
    ]
    list_select_related = ["subscriber", "event_type", "policy"]
    search_fields = ["name", "subscriber__name", "shown_address"]
    search_help_text = "Search by name, subscriber or endpoint"
    ordering = ["subscriber__name", "position", "id"]
    autocomplete_fields = ["subscriber", "event_type", "policy"]
    conditional_fields = {
        **dict.fromkeys((*_OF_PUSH, "script_tester"), "mode == 'PUSH'"),
        "username": "mode == 'PUSH' && auth_type == 'basic'",
        "password": "mode == 'PUSH' && auth_type == 'basic'",
        "token": "mode == 'PUSH' && auth_type == 'bearer'",
        "max_receives": "mode == 'PULL'",
        "dedup_path": "dedup_mode == 'PATH'",
        "dedup_window_seconds": "dedup_mode != 'NONE'",
        "join_name": "join_mode != 'NONE'",
        "join_path": "join_mode != 'NONE'",
        "join_seconds": "join_mode != 'NONE'",
    }
    fieldsets = [
        (None, {"fields": ["name", "description", "subscriber", "event_type"]}),
        ("Messages", {"fields": ["header_filter_string", "filter", "takes_unmatched", "position"]}),
        (
            "Delivery",
            {
                "fields": [
                    "mode",
                    "max_receives",
                    "endpoint",
                    "policy",
                    "probe_url",
                    "timeout_seconds",
                    "lets_pass_on_timeout",
                    "header_lines",
                    "forward_headers",
                    "forward_authorization",
                    "auth_type",
                    "username",
                    "password",
                    "token",
                ]
            },
        ),
        ("Request", {"fields": ["script"]}),
        ("Duplicates", {"fields": ["dedup_mode", "dedup_path", "dedup_window_seconds"]}),
        ("Join", {"fields": ["join_mode", "join_name", "join_path", "join_seconds"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Subscription | None = None) -> list[Any]:
        """Leave out, for readers, fields without effect and inputs whose values are never shown."""
        fieldsets: list[Any] = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        hidden = {*_TYPED, *(_OF_PUSH if obj.mode == Mode.PULL else ("max_receives",))}
        shown_as = {
            "forward_headers": "forwarded_names",
            "endpoint": "masked_endpoint",
            "probe_url": "masked_probe_url",
        }
        return [
            (
                title,
                {
                    **options,
                    "fields": [
                        shown_as.get(name, name) for name in options["fields"] if name not in hidden
                    ],
                },
            )
            for title, options in fieldsets
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Render the form.

        Readers see every field, because they get no inputs for conditions to depend on.
        """
        obj = kwargs.get("obj")
        if obj is not None and not self.has_change_permission(request, obj):
            context["adminform"].model_admin = looked_at = copy(self)
            looked_at.conditional_fields = {}
        return super().render_change_form(request, context, *args, **kwargs)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Subscription]:
        rows: QuerySet[Subscription] = super().get_queryset(request)
        if self.is_list(request):
            # Decrypting is costly, and the list shows neither.
            rows = rows.defer("headers", "auth")
            rows = with_shown_addresses(rows, "endpoint", user=request.user)
        return rows

    def is_list(self, request: HttpRequest) -> bool:
        match = request.resolver_match
        return match is not None and match.url_name == "subscriptions_subscription_changelist"

    def get_readonly_fields(
        self, request: HttpRequest, obj: Subscription | None = None
    ) -> list[str]:
        # The deliveries belong to these two: another pair needs another subscription.
        masked = ["forwarded_names", "masked_endpoint", "masked_probe_url"]
        return [*masked, *(["subscriber", "event_type"] if obj else [])]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        default = Policy.objects.filter(name=DEFAULT_POLICY).values_list("pk", flat=True).first()
        return {"policy": default} | dict(super().get_changeform_initial_data(request))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change and obj.mode == Mode.PUSH:
            SigningSecret.objects.create(subscription=obj)
        if warning := twin_warning(obj):
            messages.warning(request, warning)

    def response_add(
        self, request: HttpRequest, obj: Subscription, post_url_continue: str | None = None
    ) -> HttpResponse:
        if obj.mode == Mode.PULL:
            # The subscription's page explains fetching, and links to the keys.
            self.message_user(request, f"{obj} was created: new messages wait in its mailbox.")
            return HttpResponseRedirect(page_of(obj.pk))
        if obj.forward_headers:
            names = ", ".join(obj.forward_headers)
            self.message_user(request, f"{obj} forwards these headers of each message: {names}.")
        secret = obj.secrets.get().secret
        title = f"Signing secret of {obj}"
        return show_once(request, secret, what=title, advice=VERIFYING, next_url=page_of(obj.pk))

    @admin.display(description="subscription", ordering="subscriber__name")
    def full_name(self, row: Subscription) -> str:
        return str(row)

    @admin.display(description="event type and filter", ordering="event_type__name")
    def wants(self, row: Subscription) -> SafeString:
        conditions = (
            [f"FILTER_STRING = {row.header_filter_string}"] if row.header_filter_string else []
        )
        conditions += [row.filter] if row.filter else []
        conditions += ["no other subscription matches"] if row.takes_unmatched else []
        return lines(row.event_type.name, " and ".join(conditions))

    @admin.display(description="endpoint", ordering="endpoint")
    def goes_to(self, row: Subscription) -> SafeString:
        if row.mode == Mode.PULL:
            return lines("Mailbox", "")
        shown: str = row.shown_address  # type: ignore[attr-defined]  # annotated
        return lines(f"Policy: {row.policy}", shown)

    @admin.display(description="endpoint")
    def masked_endpoint(self, row: Subscription) -> str:
        return masked_address(row.endpoint)

    @admin.display(description="Probe URL")
    def masked_probe_url(self, row: Subscription) -> str:
        return masked_address(row.probe_url) or "–"
