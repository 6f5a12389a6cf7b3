"""Subscriptions in the console, with their backlog and the buttons to change their status."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.safestring import SafeString

from delivery.console.event_types import queue_groups
from delivery.console.health import recent as health
from delivery.console.health.sparkline import health_cell
from delivery.console.holding import cost
from delivery.console.holding.buttons import row_buttons
from delivery.console.shared.addresses import with_shown_addresses
from delivery.console.shared.base import FEW_ROWS
from delivery.console.shared.cells import ForwardedNames, lines
from delivery.console.shared.input_filters import NameFilter, choice_filter
from delivery.console.shared.list_filters import EventTypeFilter, SubscriberFilter
from delivery.console.shared.one_time_secret import show_once
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.state_cell import state_cell
from delivery.console.shared.status_page import StatusAdmin
from delivery.console.subscribers import mailboxes
from delivery.console.subscriptions.filter_tester import FilterTester
from delivery.console.subscriptions.form import SubscriptionForm
from delivery.console.subscriptions.rewriting import EndpointRewriting
from delivery.console.subscriptions.script_tester import ScriptTester
from delivery.console.subscriptions.secrets import (
    VERIFYING,
    SecretsOfSubscription,
    page_of,
    valid_secrets,
)
from delivery.console.subscriptions.shadowing import ShadowingAdmin
from delivery.console.subscriptions.status import read_subscription
from delivery.console.subscriptions.trial_page import TestSending
from delivery.models import EndpointState, EndpointSummary
from delivery.standing import retry_lane
from delivery.standing.reading import last_delivered, standing_of_subscriptions
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


@admin.register(Subscription)
class SubscriptionAdmin(
    FilterTester,
    ScriptTester,
    TestSending,
    StatusAdmin,
    ShadowingAdmin,
    CompletedList,
    ForwardedNames,
    SecretsOfSubscription,
    EndpointRewriting,
    RecordedAdmin,
):
    form = SubscriptionForm
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
    empty_text = (
        "A subscription routes messages of an event type to an endpoint or into a mailbox. "
        "It needs a subscriber and an event type."
    )
    list_display = [
        "full_name",
        "state",
        "selection_column",
        "endpoint_column",
        "day",
        "backlog",
        "toggle",
    ]
    button_columns = ("toggle",)
    list_per_page = FEW_ROWS
    status_template = "console/subscriptions/status.html"

    class Media:
        js = ["console/script_editor.js"]

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
        masked = ["forwarded_names", "masked_endpoint", "masked_probe_url"]
        # The deliveries belong to these two: another pair needs another subscription.
        fixed = ["subscriber", "event_type"] if obj else []
        return [*super().get_readonly_fields(request, obj), *masked, *fixed]

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

    def status_rows(self) -> QuerySet[Subscription]:
        return Subscription.objects.select_related("subscriber", "event_type", "policy").defer(
            "headers", "auth"
        )

    def status_values(self, row: Subscription, request: HttpRequest) -> dict[str, Any]:
        now, ids = timezone.now(), [row.pk]
        standing = standing_of_subscriptions(ids)[row.pk]
        return {
            "status": read_subscription(row),
            "standing": standing,
            "last_delivered_at": last_delivered(standing, subscriptions=ids),
            "cost": cost.cost_of_subscriptions(ids)[row.pk],
            "health": health.health_of_subscriptions(ids, now=now, step=health.QUARTER)[row.pk],
            "mailbox": mailboxes.mailbox_of_subscription(row.pk, now=now),
            "retries": retry_lane.retries_of_subscription(row.pk),
            "endpoint": EndpointSummary.objects.filter(pk=row.pk)
            .exclude(state=EndpointState.UP)
            .first(),
            "group_size": queue_groups.group_size(row),
            "secrets": valid_secrets(
                row.pk, now=now, shows_characters=self.may_change_rows(request)
            ),
            "may_toggle": may_toggle(request.user),
            "may_unblock": request.user.has_perm("delivery.change_lane"),
        }

    def complete(self, rows: Sequence[Any]) -> None:
        ids = [row.pk for row in rows]
        healths = health.health_of_subscriptions(ids, now=timezone.now())
        costs = cost.cost_of_subscriptions(ids)
        standings = standing_of_subscriptions(ids)
        for row in rows:
            row.standing = standings[row.pk]
            row.health = healths[row.pk]
            row.cost = costs[row.pk]

    @admin.display(description="event type and filter", ordering="event_type__name")
    def selection_column(self, row: Subscription) -> SafeString:
        conditions = (
            [f"FILTER_STRING = {row.header_filter_string}"] if row.header_filter_string else []
        )
        conditions += [row.filter] if row.filter else []
        conditions += ["no other subscription matches"] if row.takes_unmatched else []
        return lines(row.event_type.name, " and ".join(conditions))

    @admin.display(description="endpoint", ordering="endpoint")
    def endpoint_column(self, row: Subscription) -> SafeString:
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

    @admin.display(description="subscription", ordering="subscriber__name")
    def full_name(self, row: Subscription) -> SafeString:
        return self.status_link(row, str(row))

    @admin.display(description="state")
    def state(self, row: Any) -> SafeString:
        return state_cell(row.standing, now=timezone.now(), is_of_subscription=True)

    @admin.display(description="last 24 h")
    def day(self, row: Any) -> SafeString:
        return health_cell(row.health)

    @admin.display(description="backlog")
    def backlog(self, row: Any) -> str:
        waiting = row.standing.waiting
        return f"{waiting} held" if waiting and row.held_by is not None else str(waiting)

    @admin.display(description="actions")
    def toggle(self, row: Any) -> SafeString:
        return row_buttons(row, backlog=row.standing.waiting, cost=row.cost)
