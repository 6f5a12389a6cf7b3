"""The keys of a publisher or subscriber, listed on the page of it, with a button to revoke each."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import TabularInline

from delivery.console.shared.base import ReadOnly
from delivery.console.shared.times import ago
from subscriptions.models import ApiKey


class KeyList(ReadOnly, TabularInline):  # type: ignore[misc]  # Unfold has no types
    model = ApiKey
    extra = 0
    verbose_name_plural = "Keys"
    fields = readonly_fields = ["key", "name", "created", "expires", "last_used", "state", "revoke"]
    show_change_link = False
    hide_title = True

    @admin.display(description="key")
    def key(self, row: ApiKey) -> str:
        return f"…{row.hint}"

    @admin.display(description="created")
    def created(self, row: ApiKey) -> SafeString | str:
        return ago(row.created_at, now=timezone.now())

    @admin.display(description="expires")
    def expires(self, row: ApiKey) -> SafeString | str:
        return ago(row.expires_at, now=timezone.now()) if row.expires_at else "never"

    @admin.display(description="last used")
    def last_used(self, row: ApiKey) -> SafeString | str:
        return ago(row.last_used_at, now=timezone.now()) if row.last_used_at else "never"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        may_revoke = request.user.has_perm("subscriptions.change_apikey")
        return [name for name in self.fields if name != "revoke" or may_revoke]

    @admin.display(description="state")
    def state(self, row: ApiKey) -> SafeString | str:
        return state_of_key(row, now=timezone.now())

    @admin.display(description="actions")
    def revoke(self, row: ApiKey) -> SafeString | str:
        return revoke_button(row)


def state_of_key(row: ApiKey, *, now: datetime) -> SafeString | str:
    if row.revoked_at is not None:
        return format_html("revoked {}", ago(row.revoked_at, now=now))
    return "expired" if row.expires_at is not None and row.expires_at <= now else "active"


def revoke_button(row: ApiKey) -> SafeString | str:
    if row.revoked_at is not None:
        return ""
    return format_html(
        '<button type="submit" class="inturn-button" form="console-post" formaction="{}" '
        'data-confirm="{}">Revoke</button>',
        reverse("admin:subscriptions_apikey_revoke", args=[row.pk]),
        f"Revoke the key …{row.hint}? Requests with it will be answered 401. You cannot undo this.",
    )
