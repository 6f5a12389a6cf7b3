"""The filter tester in the form of a subscription: it tries the typed values, saved or not."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.shared.base import id_of
from delivery.console.subscriptions.filter_trial import Typed, mistake_in_filter, try_filter
from delivery.support.payload import may_see_payload
from subscriptions.models import EventType, Subscription

# The default limit of a message, and more than anybody types.
LONGEST_BODY = 1024 * 1024


class FilterTester:
    """Mixin for the ModelAdmin of subscriptions."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.test_filter))  # type: ignore[attr-defined]
        name = "subscriptions_subscription_filter_test"
        return [path("filter-test/", view, name=name), *super().get_urls()]  # type: ignore[misc]

    def get_fieldsets(self, request: HttpRequest, obj: Subscription | None = None) -> list[Any]:
        """Put the tester below the filter."""
        fieldsets: list[Any] = super().get_fieldsets(request, obj)  # type: ignore[misc]
        if not may_test(request):
            return fieldsets
        return [
            (title, options | {"fields": _with_tester(options["fields"])})
            for title, options in fieldsets
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Subscription | None = None
    ) -> list[str]:
        return [*super().get_readonly_fields(request, obj), "tester"]  # type: ignore[misc]

    def tester(self, row: Subscription) -> SafeString:
        return render_to_string(
            "console/subscriptions/filter_tester.html", {"row": row if row.pk else None}
        )

    tester.short_description = "Test the filter"  # type: ignore[attr-defined]

    @staticmethod
    def test_filter(request: HttpRequest) -> HttpResponse:
        """Return the part of the page below the filter.

        With `check`, return only the filter's syntax error.
        """
        if not may_test(request):
            raise PermissionDenied
        stored = _stored(request)
        typed = _typed(request, stored)
        if "check" in request.POST:
            return render(
                request,
                "console/subscriptions/filter_checked.html",
                {"mistake": mistake_in_filter(typed), "typed": typed},
            )
        # The number of messages matching a filter of the user's choice reveals their content, and
        # so does a header filter string.
        is_stored = stored is not None and "filter" not in request.POST
        may_preview = may_see_payload(request.user) or is_stored
        tried = try_filter(typed, event_type=_event_type(request, stored), may_preview=may_preview)
        shown = {"trial": tried, "typed": typed, "may_preview": may_preview}
        return render(request, "console/subscriptions/filter_tested.html", shown)


def _with_tester(fields: list[str]) -> list[str]:
    behind = fields.index("filter") + 1 if "filter" in fields else 0
    return [*fields[:behind], "tester", *fields[behind:]] if behind else fields


def may_test(request: HttpRequest) -> bool:
    return request.user.has_perms(("subscriptions.view_subscription", "delivery.view_message"))


def _stored(request: HttpRequest) -> Subscription | None:
    pk = id_of(request.POST.get("tested_subscription", ""))
    return (
        None
        if pk is None
        else Subscription.objects.select_related("event_type").filter(pk=pk).first()
    )


def _typed(request: HttpRequest, stored: Subscription | None) -> Typed:
    """Read the typed values as the form does, which strips them.

    A user who may only view has no fields, so the stored values are used.
    """
    if stored is not None and "filter" not in request.POST:
        text, header_filter_string = stored.filter, stored.header_filter_string
    else:
        text, header_filter_string = (
            request.POST.get(name, "").strip() for name in ("filter", "header_filter_string")
        )
    return Typed(
        filter=text,
        header_filter_string=header_filter_string,
        headers=request.POST.get("tested_headers", ""),
        body=request.POST.get("tested_body", "")[:LONGEST_BODY],
    )


def _event_type(request: HttpRequest, stored: Subscription | None) -> EventType | None:
    if stored is not None:
        return stored.event_type
    return EventType.objects.filter(pk=id_of(request.POST.get("event_type", "")) or 0).first()
