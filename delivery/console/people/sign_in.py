"""The log of sign-ins, sign-outs and refused attempts, and the button to end a wait."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Count, Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.shared.base import actor_of
from delivery.console.shared.export import ExportedAdmin
from delivery.console.shared.input_filters import ExactText, Since, Until, choice_filter
from subscriptions import sign_in
from subscriptions.changes import record_change
from subscriptions.models import Door, SignIn, SignInKind

SHOWN = 20


class UsernameFilter(ExactText):
    title = "Name"
    parameter_name = lookup = "username"


class AddressFilter(ExactText):
    """Filters by the address, or by the network of an IPv6 address."""

    title = "From"
    parameter_name = "address"
    lookup = "origin"


@admin.register(SignIn)
class SignInAdmin(ExportedAdmin):
    empty_text = "Every sign-in, sign-out and failed sign-in is recorded here with its address."
    list_display = ["when", "what", "who", "address", "where"]
    list_display_links = None
    list_filter = [
        choice_filter("Event", "kind", SignInKind.values),
        choice_filter("Door", "door", Door.values),
        UsernameFilter,
        AddressFilter,
        Since,
        Until,
    ]
    list_before_template = "console/people/throttled.html"

    def get_urls(self) -> list[URLPattern]:
        let_in = self.admin_site.admin_view(require_POST(self.let_in))
        return [
            path("<int:object_id>/let-in/", let_in, name="subscriptions_signin_let_in"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        shown = {
            "throttled": throttled(now=timezone.now()),
            "may_let_in": self.may_change_rows(request),
            **(extra_context or {}),
        }
        return super().changelist_view(request, shown)

    def let_in(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """End the wait of the failed account, and of everybody from the origin, at this door."""
        failure: SignIn = self.permitted(request, object_id)
        if count := sign_in.forgive_failures(failure):
            after = {"failures": 0}
            record_change(
                actor=actor_of(request),
                action="let in",
                instance=failure,
                before={"failures": count},
                after=after,
            )
        return self.back(request, f"{who(failure)} may try again at once.")

    def exported(self, row: SignIn) -> dict[str, Any]:
        return {
            "id": row.pk,
            "at": row.at,
            "kind": row.kind,
            "username": row.username,
            "address": row.address,
            "door": row.door,
        }

    @admin.display(description="event")
    def what(self, row: SignIn) -> SafeString:
        return format_html('<span title="{}">{}</span>', row.get_kind_display(), row.kind)

    @admin.display(description="at")
    def where(self, row: SignIn) -> str:
        return row.get_door_display()

    @admin.display(description="user")
    def who(self, row: SignIn) -> str:
        return row.username or "an unknown name"


def who(row: SignIn) -> str:
    return f"{row.username or 'An unknown user'} from {row.address or 'an unknown address'}"


def throttled(*, now: datetime) -> list[SignIn]:
    """Return the last failure of each throttled account and origin, with `until`, newest first."""
    counted = SignIn.objects.filter(counts=True, at__gt=now - sign_in.WINDOW)
    latest = _latest_of(
        counted, "door", "account", "origin", most=sign_in.MOST_OF_ACCOUNT_FROM_ORIGIN
    )
    latest += _latest_of(counted, "door", "origin", most=sign_in.MOST_FROM_ORIGIN)
    latest += _latest_of(counted, "door", "account", most=sign_in.MOST_OF_ACCOUNT)
    rows: list[Any] = list(SignIn.objects.filter(pk__in=latest).order_by("-id")[:SHOWN])
    for row in rows:
        row.until = row.at + sign_in.WINDOW
    return rows


def _latest_of(counted: QuerySet[SignIn], *names: str, most: int) -> list[int]:
    full = (
        counted.order_by()
        .values(*names)
        .annotate(n=Count("id"), latest=Max("id"))
        .filter(n__gte=most)
    )
    return list(full.values_list("latest", flat=True)[:SHOWN])
