"""The TeamForge publish addresses of a publisher in the console: list, creation, rotation, end."""

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST
from unfold.admin import TabularInline

from delivery.console.shared.base import ReadOnly, actor_of
from delivery.console.shared.one_time_secret import show_once
from delivery.console.shared.times import ago
from subscriptions.changes import record_change, snapshot
from subscriptions.models import Publisher, PublishId
from subscriptions.publish_ids import (
    PublishIdRefusedError,
    end_publish_id,
    publish_addresses,
    rotate_publish_id,
)

_ADVICE = (
    "Replace {eventName} by the name of an event type. The first address needs nothing else; the "
    "second also the token that a login gives. Earlier addresses are valid for 24 hours more, and "
    "can be ended on the publisher's page."
)


class PublishIdList(ReadOnly, TabularInline):  # type: ignore[misc]  # Unfold has no types
    model = PublishId
    extra = 0
    verbose_name_plural = "TeamForge publish addresses"
    fields = readonly_fields = ["address", "created", "last_used", "state", "end"]
    show_change_link = False
    hide_title = True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("subscriptions.view_publisher"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        may_end = request.user.has_perm("subscriptions.change_publisher")
        return [name for name in self.fields if name != "end" or may_end]

    @admin.display(description="address")
    def address(self, row: PublishId) -> SafeString:
        return format_html("<code>/v4/inbox/{{eventName}}/…{}</code>", row.hint)

    @admin.display(description="created")
    def created(self, row: PublishId) -> SafeString | str:
        return ago(row.created_at, now=timezone.now())

    @admin.display(description="last used")
    def last_used(self, row: PublishId) -> SafeString | str:
        return ago(row.last_used_at, now=timezone.now()) if row.last_used_at else "never"

    @admin.display(description="state")
    def state(self, row: PublishId) -> SafeString | str:
        now = timezone.now()
        if row.expires_at is None:
            return "valid"
        return format_html(
            "{} {}", "ended" if row.expires_at <= now else "ends", ago(row.expires_at, now=now)
        )

    @admin.display(description="actions")
    def end(self, row: PublishId) -> SafeString | str:
        if row.expires_at is not None and row.expires_at <= timezone.now():
            return ""
        return format_html(
            '<button type="submit" class="inturn-button" form="console-post" formaction="{}" '
            'data-confirm="{}">Revoke now</button>',
            reverse("admin:subscriptions_publisher_end_address", args=[row.publisher_id, row.pk]),
            f"Revoke the address …{row.hint}? Publishers that use it will be answered 400. "
            "You cannot undo this.",
        )


class PublishAddresses:
    """Mix into the ModelAdmin of publishers."""

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))  # type: ignore[attr-defined]

        name = "subscriptions_publisher"
        return [
            path(
                "<int:object_id>/address/", posted(self.make_address), name=f"{name}_make_address"
            ),
            path(
                "<int:object_id>/addresses/<int:id>/end/",
                posted(self.end_address),
                name=f"{name}_end_address",
            ),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def make_address(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Create new publish addresses and show them once."""
        publisher: Publisher = self.permitted(request, object_id)  # type: ignore[attr-defined]
        try:
            text = _rotated(publisher, actor=actor_of(request))
        except PublishIdRefusedError as refused:
            return self._back(request, str(refused), level=messages.ERROR)
        title = f"TeamForge publish addresses of {publisher}"
        return show_once(
            request,
            "\n".join(publish_addresses(text)),
            what=title,
            advice=_ADVICE,
            next_url=_page_of(publisher),
        )

    def end_address(self, request: HttpRequest, object_id: int, id: int) -> HttpResponse:
        """End an address now."""
        publisher: Publisher = self.permitted(request, object_id)  # type: ignore[attr-defined]
        if not _ended(publisher, id, actor=actor_of(request)):
            return self._back(request, "This address was already revoked.", level=messages.WARNING)
        return self._back(
            request, "The address is revoked: publishers that use it are answered 400."
        )

    def _back(
        self, request: HttpRequest, text: str, *, level: int = messages.SUCCESS
    ) -> HttpResponse:
        page: HttpResponse = self.back(request, text, level=level)  # type: ignore[attr-defined]
        return page


def _page_of(publisher: Publisher) -> str:
    return reverse("admin:subscriptions_publisher_change", args=[publisher.pk])


@transaction.atomic
def _rotated(publisher: Publisher, *, actor: str) -> str:
    locked = Publisher.objects.select_for_update(no_key=True).get(pk=publisher.pk)
    made, text = rotate_publish_id(locked, now=timezone.now())
    record_change(actor=actor, action="created", instance=made, before=None, after=snapshot(made))
    return text


@transaction.atomic
def _ended(publisher: Publisher, id: int, *, actor: str) -> bool:
    row = get_object_or_404(PublishId.objects.filter(publisher=publisher), pk=id)
    before = snapshot(row)
    if not end_publish_id(row, now=timezone.now()):
        return False
    row.refresh_from_db()
    record_change(actor=actor, action="ended", instance=row, before=before, after=snapshot(row))
    return True
