"""Subscriptions in the console; `delivery.admin.subscription` adds what only delivering knows, and registers it."""

from copy import copy
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from subscriptions.admin.base import actor_of
from subscriptions.admin.list_filters import ChoiceFilter, EventTypeFilter, NameFilter, SubscriberFilter
from subscriptions.admin.recorded import RecordedAdmin
from subscriptions.admin.shown_once import show_once
from subscriptions.admin.subscription_form import SubscriptionForm
from subscriptions.changes import record, snapshot
from subscriptions.mode_checks import UNSIGNED
from subscriptions.models import Mode, Policy, SigningSecret, Subscription, SubscriptionStatus
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.rotation import DEFAULT_OVERLAP, MAX_VALID, TooManySecretsError, rotate

_VERIFYING = "The receiver verifies webhook-signature with it, as Standard Webhooks describes."
_OF_PUSH = (
    "endpoint",
    "policy",
    "probe_url",
    "timeout_seconds",
    "lets_pass_on_timeout",
    "header_lines",
    "auth_type",
)
_TYPED = ("header_lines", "auth_type", "username", "password", "token")


class PolicyFilter(NameFilter):
    title = "Policy"
    parameter_name = "policy"
    lookup = "policy__name"
    named = Policy


class StatusFilter(ChoiceFilter):
    title = "Status"
    parameter_name = lookup = "status"
    offered = SubscriptionStatus.values


class ModeFilter(ChoiceFilter):
    title = "Mode"
    parameter_name = lookup = "mode"
    offered = Mode.values


class SubscriptionAdmin(RecordedAdmin):
    form = SubscriptionForm
    list_display = ["full_name", "wants", "goes_to"]
    list_filter = [StatusFilter, ModeFilter, SubscriberFilter, EventTypeFilter, PolicyFilter]
    list_select_related = ["subscriber", "event_type", "policy"]
    search_fields = ["name", "subscriber__name", "endpoint"]
    search_help_text = "Search by name, subscriber or endpoint"
    ordering = ["subscriber__name", "position", "id"]
    autocomplete_fields = ["subscriber", "event_type", "policy"]
    conditional_fields = {
        **dict.fromkeys(_OF_PUSH, "mode == 'PUSH'"),
        "username": "mode == 'PUSH' && auth_type == 'basic'",
        "password": "mode == 'PUSH' && auth_type == 'basic'",
        "token": "mode == 'PUSH' && auth_type == 'bearer'",
        "max_receives": "mode == 'PULL'",
        "dedup_path": "dedup_mode == 'PATH'",
        "dedup_window_seconds": "dedup_mode != 'NONE'",
    }
    fieldsets = [
        (None, {"fields": ["name", "subscriber", "event_type"]}),
        ("Which messages qualify", {"fields": ["header_filter_string", "filter", "position"]}),
        (
            "Where they go",
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
                    "auth_type",
                    "username",
                    "password",
                    "token",
                ]
            },
        ),
        ("What came before", {"fields": ["dedup_mode", "dedup_path", "dedup_window_seconds"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Subscription | None = None) -> list[Any]:
        """Leave out what has no effect, and of who may only look what is typed and never shown."""
        fieldsets: list[Any] = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        hidden = {*_TYPED, *(_OF_PUSH if obj.mode == Mode.PULL else ("max_receives",))}
        return [
            (title, {**options, "fields": [name for name in options["fields"] if name not in hidden]})
            for title, options in fieldsets
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Who may only look gets no fields, which what is shown could depend on: all of it is shown."""
        obj = kwargs.get("obj")
        if obj is not None and not self.has_change_permission(request, obj):
            context["adminform"].model_admin = looked_at = copy(self)
            looked_at.conditional_fields = {}
        return super().render_change_form(request, context, *args, **kwargs)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Subscription]:
        rows: QuerySet[Subscription] = super().get_queryset(request)
        if self.is_list(request):
            # Deciphering costs, and the list shows neither.
            rows = rows.defer("headers", "auth")
        return rows

    def is_list(self, request: HttpRequest) -> bool:
        match = request.resolver_match
        return match is not None and match.url_name == "subscriptions_subscription_changelist"

    def get_readonly_fields(self, request: HttpRequest, obj: Subscription | None = None) -> list[str]:
        # Its deliveries belong to them: for another one, make another subscription.
        return ["subscriber", "event_type"] if obj else []

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        default = Policy.objects.filter(name=DEFAULT_POLICY).values_list("pk", flat=True).first()
        return {"policy": default} | dict(super().get_changeform_initial_data(request))

    def get_urls(self) -> list[URLPattern]:
        rotate = self.admin_site.admin_view(require_POST(self.rotate))
        return [
            path("<int:object_id>/rotate/", rotate, name="subscriptions_subscription_rotate"),
            *super().get_urls(),
        ]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change and obj.mode == Mode.PUSH:
            SigningSecret.objects.create(subscription=obj)

    def response_add(
        self, request: HttpRequest, obj: Subscription, post_url_continue: str | None = None
    ) -> HttpResponse:
        if obj.mode == Mode.PULL:
            # Its page says how to fetch, and leads to the keys.
            self.message_user(request, f"{obj} was made: what is published from now on waits in the mailbox.")
            return HttpResponseRedirect(self._page_of(obj.pk))
        return self._show(request, obj.secrets.get(), what=f"Signing secret of {obj}", advice=_VERIFYING)

    def rotate(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Make a new secret; the old ones sign beside it for a day."""
        subscription: Subscription = self.permitted(request, object_id)
        if subscription.mode == Mode.PULL:
            return self.back(request, UNSIGNED, level=messages.WARNING)
        now = timezone.now()
        try:
            made = self._rotated(subscription, now=now, actor=actor_of(request))
        except TooManySecretsError:
            text = (
                f"{MAX_VALID} secrets of {subscription} are valid already; rotate again when one has ended."
            )
            return self.back(request, text, level=messages.ERROR)
        until = f"{now + DEFAULT_OVERLAP:%Y-%m-%d %H:%M} UTC"
        advice = f"{_VERIFYING} Until {until} requests carry a signature of the old one too."
        return self._show(request, made, what=f"New signing secret of {subscription}", advice=advice)

    def _rotated(self, subscription: Subscription, *, now: datetime, actor: str) -> SigningSecret:
        with transaction.atomic():
            locked = Subscription.objects.select_for_update(no_key=True).get(pk=subscription.pk)
            made = rotate(locked, now=now, overlap=DEFAULT_OVERLAP)
            record(actor=actor, action="rotated", instance=made, before=None, after=snapshot(made))
        return made

    def _show(self, request: HttpRequest, secret: SigningSecret, *, what: str, advice: str) -> HttpResponse:
        page = self._page_of(secret.subscription_id)
        return show_once(request, secret.secret, what=what, advice=advice, next_url=page)

    def _page_of(self, subscription_id: int) -> str:
        return reverse("admin:subscriptions_subscription_change", args=[subscription_id])

    @admin.display(description="subscription", ordering="subscriber__name")
    def full_name(self, row: Subscription) -> str:
        return str(row)

    @admin.display(description="wants", ordering="event_type__name")
    def wants(self, row: Subscription) -> SafeString:
        conditions = [f"FILTER_STRING = {row.header_filter_string}"] if row.header_filter_string else []
        conditions += [row.filter] if row.filter else []
        return _two_lines(row.event_type.name, " and ".join(conditions))

    @admin.display(description="goes to", ordering="endpoint")
    def goes_to(self, row: Subscription) -> SafeString:
        if row.mode == Mode.PULL:
            return _two_lines("into the mailbox", "")
        return _two_lines(f"by policy {row.policy}", row.endpoint)


def _two_lines(first: str, second: str) -> SafeString:
    code = format_html('<code class="inturn-second" title="{}">{}</code>', second, second) if second else ""
    return format_html('<span class="inturn-lines">{}{}</span>', first, code)
