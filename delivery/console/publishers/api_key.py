"""API keys in the console: created, shown once, revoked; never edited and never shown again."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.people.rights import scopes_within
from delivery.console.publishers.key_list import revoke_button, state_of_key
from delivery.console.shared.base import actor_of, person
from delivery.console.shared.moment_field import moment_field
from delivery.console.shared.one_time_secret import show_once
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.times import ago
from subscriptions.changes import record_change, snapshot
from subscriptions.models import ApiKey, Scope
from subscriptions.models.api_key import new_key
from subscriptions.reach import is_limited

_HELP = {
    "name": "Purpose, such as production, to distinguish it from other keys.",
    "publisher": "It publishes with the key. A read key is limited to its messages and "
    "deliveries; empty: no limit.",
    "subscriber": "Its mailbox is fetched with the key. A read key is limited to its deliveries "
    "and lane; empty: no limit.",
}
# Shown if not all scopes are offered.
_LEFT_OUT = "You can create only keys with rights that you have yourself."
_OWNER = {Scope.PUBLISH: "publisher", Scope.FETCH: "subscriber"}
_OWNERS = tuple(_OWNER.values())


class ApiKeyForm(forms.ModelForm[ApiKey]):
    expires_at = moment_field(
        "Expires at (UTC)", required=False, help_text="Empty: it never expires."
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("scope") == Scope.READ:
            if all(cleaned.get(owner) for owner in _OWNERS):
                self.add_error("subscriber", "Limit a key to a publisher or to a subscriber.")
            return cleaned
        wanted = _OWNER.get(cleaned.get("scope", ""))
        for owner in _OWNERS:
            if owner == wanted and not cleaned.get(owner):
                self.add_error(owner, f"Choose the {owner} this key acts for.")
            if owner != wanted and cleaned.get(owner):
                self.add_error(owner, f"A key of this scope has no {owner}; leave it empty.")
        return cleaned

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError("This time is in the past; choose a later one, or none.")
        return expires_at


@admin.register(ApiKey)
class ApiKeyAdmin(RecordedAdmin):
    form = ApiKeyForm
    empty_text = (
        "A key lets an application publish, fetch, read or manage. It is shown once, "
        "when it is created."
    )
    list_display = [
        "key",
        "name",
        "scope",
        "owner",
        "created",
        "expires",
        "last_used",
        "state",
        "revoke_button",
    ]
    button_columns = ("revoke_button",)
    list_display_links = None
    list_filter = ["scope"]
    search_fields = ["name", "hint", "publisher__name", "subscriber__name"]
    search_help_text = "Search by name, owner or the last four characters"
    fields = ["scope", "publisher", "subscriber", "name", "expires_at"]
    autocomplete_fields = ["publisher", "subscriber"]
    conditional_fields = {
        "publisher": "scope == 'publish' || scope == 'read'",
        "subscriber": "scope == 'fetch' || scope == 'read'",
    }

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name in _HELP:
            field.help_text = _HELP[db_field.name]
        if db_field.name == "scope":
            _offer(field, scopes_within(person(request)))
        return field

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        """Offer only plain saving, because the next page shows the key, once."""
        shown = {"show_save_and_add_another": False, "show_save_and_continue": False}
        page: HttpResponse = super().changeform_view(
            request, object_id, form_url, {**(extra_context or {}), **shown}
        )
        return page

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        rows: QuerySet[ApiKey] = (
            super().get_queryset(request).select_related("publisher", "subscriber")
        )
        return rows

    def get_urls(self) -> list[URLPattern]:
        revoke = self.admin_site.admin_view(require_POST(self.revoke))
        return [
            path("<int:object_id>/revoke/", revoke, name="subscriptions_apikey_revoke"),
            *super().get_urls(),
        ]

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        # A revoked key stays, so log entries can be attributed.
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        # Only on the object for the answer: the text is stored nowhere.
        obj.key = new_key()
        obj.set_key(obj.key)
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        return show_once(
            request,
            obj.key,
            what=f"New {obj.scope} key",
            advice="Send it as: Authorization: Bearer <key>",
            next_url=self._page_of_owner(obj),
        )

    def revoke(self, request: HttpRequest, object_id: int) -> HttpResponse:
        key: ApiKey = self.permitted(request, object_id)
        if key.revoked_at is None:
            before = snapshot(key)
            key.revoked_at = timezone.now()
            key.save(update_fields=["revoked_at"])
            record_change(
                actor=actor_of(request),
                action="revoked",
                instance=key,
                before=before,
                after=snapshot(key),
            )
        return self.back(request, f"The {key} is revoked: requests with it are answered 401.")

    @admin.display(description="key", ordering="id")
    def key(self, row: ApiKey) -> str:
        return f"…{row.hint}"

    @admin.display(description="owner")
    def owner(self, row: ApiKey) -> str:
        owner = str(row.publisher or row.subscriber or "–")
        return f"only {owner}" if is_limited(row) else owner

    @admin.display(description="created", ordering="created_at")
    def created(self, row: ApiKey) -> SafeString | str:
        return ago(row.created_at, now=timezone.now())

    @admin.display(description="expires", ordering="expires_at")
    def expires(self, row: ApiKey) -> SafeString | str:
        return ago(row.expires_at, now=timezone.now()) if row.expires_at else "never"

    @admin.display(description="last used", ordering="last_used_at")
    def last_used(self, row: ApiKey) -> SafeString | str:
        return ago(row.last_used_at, now=timezone.now()) if row.last_used_at else "never"

    @admin.display(description="state")
    def state(self, row: ApiKey) -> SafeString | str:
        return state_of_key(row, now=timezone.now())

    @admin.display(description="actions")
    def revoke_button(self, row: ApiKey) -> SafeString | str:
        return revoke_button(row)

    def _page_of_owner(self, key: ApiKey) -> str:
        if key.publisher_id:
            return reverse("admin:subscriptions_publisher_change", args=[key.publisher_id])
        if key.subscriber_id:
            return reverse("admin:subscriptions_subscriber_change", args=[key.subscriber_id])
        return reverse("admin:subscriptions_apikey_changelist")


def _offer(field: Any, scopes: list[Scope]) -> None:
    """Offer only these scopes, because nobody grants more than they have."""
    field.choices = [choice for choice in field.choices if choice[0] in ("", *scopes)]
    if len(scopes) < len(Scope):
        field.help_text = _LEFT_OUT
