"""URL health in the console: the circuit breaker's state of each URL, and a release button."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Case, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.health import urls as url_health
from delivery.console.shared.addresses import address_for, with_shown_addresses
from delivery.console.shared.base import ConsoleAdmin, ReadOnly, actor_of
from delivery.console.shared.input_filters import choice_filter
from delivery.console.shared.labels import label, two_lines
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.times import ago, due
from delivery.models import UrlHealth, UrlState
from delivery.support import release_url as url_release
from delivery.support.release_url import url_of
from subscriptions.values.counts import counted
from subscriptions.values.shown_addresses import secret_address_key


@admin.register(UrlHealth)
class UrlHealthAdmin(ReadOnly, CompletedList, ConsoleAdmin):
    empty_text = (
        "A URL appears here after its first attempt under a policy with the circuit breaker, "
        "such as workfront-48h."
    )
    list_display = ["address", "url_state", "failed", "last_success", "next_probe", "buttons"]
    button_columns = ("buttons",)
    list_filter = [choice_filter("State", "state", UrlState.values)]
    # Django's links would have the whole URL.
    list_display_links = None
    search_fields = ["shown_address"]
    search_help_text = "Search by URL"
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> Any:
        return with_shown_addresses(super().get_queryset(request), "url", user=request.user)

    def get_ordering(self, request: HttpRequest) -> Any:
        # URLs in need of a person first, then those with a scheduled probe.
        states = [UrlState.FROZEN, UrlState.DISABLED, UrlState.ENABLED]
        return [
            Case(*(When(state=state, then=Value(place)) for place, state in enumerate(states))),
            "url",
        ]

    def get_urls(self) -> list[URLPattern]:
        release = self.admin_site.admin_view(require_POST(self.release))
        return [
            path("<path:object_id>/release/", release, name="delivery_urlhealth_release"),
            *super().get_urls(),
        ]

    def complete(self, rows: Sequence[Any]) -> None:
        counted = url_health.subscriptions_by_url([row.url for row in rows])
        for row in rows:
            row.counted = counted.get(row.url, 0)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        health = _health(object_id)
        if not self.has_view_permission(request, health):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": health,
            "title": address_for(request.user, health.url),
            "page": url_health.read_url_page(health),
            "share": url_health.failure_share(health),
            "release_url": release_url(health) if self.may_change_rows(request) else "",
        }
        return TemplateResponse(request, "console/health/url_health.html", context)

    def release(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not self.may_change_rows(request):
            raise PermissionDenied
        url = _health(object_id).url
        shown = address_for(request.user, url)
        try:
            url_release.release_url(url, actor=actor_of(request))
        except UrlHealth.DoesNotExist:
            raise Http404 from None
        except url_release.NotStoppedError:
            text = f"Nothing was done: {shown} is ENABLED already."
            return self.back(request, text, level=messages.WARNING)
        return self.back(request, f"{shown} is released; its waiting deliveries are sent.")

    @admin.display(description="URL")
    def address(self, row: Any) -> SafeString:
        shown = row.shown_address
        code = format_html(
            '<a class="inturn-link" href="{}">'
            '<code class="inturn-clipped" title="{}">{}</code></a>',
            reverse("admin:delivery_urlhealth_change", args=[secret_address_key(row.url)]),
            shown,
            shown,
        )
        return two_lines(code, counted(row.counted, "subscription"))

    @admin.display(description="state")
    def url_state(self, row: UrlHealth) -> SafeString:
        return two_lines(
            label(row.state), format_html("since {}", ago(row.since, now=timezone.now()))
        )

    @admin.display(description="failed")
    def failed(self, row: UrlHealth) -> SafeString:
        return two_lines(url_health.failure_share(row), f"{row.failures_in_row:,} in a row")

    @admin.display(description="last success")
    def last_success(self, row: UrlHealth) -> SafeString | str:
        if row.first_success_at is None:
            return "never"
        return ago(row.last_success_at, now=timezone.now())

    @admin.display(description="next probe")
    def next_probe(self, row: UrlHealth) -> SafeString | str:
        if row.state == UrlState.FROZEN:
            return "waits for a person"
        return due(row.next_probe_at, now=timezone.now())

    @admin.display(description="actions")
    def buttons(self, row: UrlHealth) -> SafeString | str:
        if row.state == UrlState.ENABLED:
            return ""
        return format_html(
            (
                '<button type="submit" class="inturn-button" form="console-post" '
                'formaction="{}">Release</button>'
            ),
            release_url(row),
        )


def release_url(health: UrlHealth) -> str:
    """Return the address for the URL's release button."""
    return reverse("admin:delivery_urlhealth_release", args=[secret_address_key(health.url)])


def _health(object_id: str) -> UrlHealth:
    """Return the row with this key of the URL, or with the URL itself; raise Http404."""
    return get_object_or_404(UrlHealth, pk=url_of(unquote(object_id)))
