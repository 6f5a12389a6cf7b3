"""The people who may use the console, and their roles."""

from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from subscriptions.admin.base import actor_of
from subscriptions.admin.recorded import RecordedAdmin
from subscriptions.admin.times import ago
from subscriptions.changes import MASKED, record

# Rights about anything else, sessions for example, mean nothing in this console.
_OUR_APPS = ("subscriptions", "delivery", "auth")

# Django's own admin module registers both when it is imported.
admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(RecordedAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    """What someone may do comes from roles: single rights are not given to persons."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "is_active", "is_superuser", "last_seen"]
    list_filter = ["is_active", "groups"]
    filter_horizontal = ()
    autocomplete_fields = ["groups"]
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("What they may do", {"fields": ["is_active", "is_staff", "is_superuser", "groups"]}),
    ]

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        with transaction.atomic():
            response = super().user_change_password(request, id, form_url)
            if response.status_code == HTTPStatus.FOUND:
                user = User.objects.get(pk=id)
                set_anew = {"password": f"{MASKED}, set anew"}
                record(actor=actor_of(request), action="changed", instance=user, before={}, after=set_anew)
        return response

    @admin.display(description="last login", ordering="last_login")
    def last_seen(self, row: User) -> SafeString | str:
        return ago(row.last_login, now=timezone.now())


@admin.register(Group)
class GroupAdmin(RecordedAdmin, DjangoGroupAdmin):
    """Shown as roles, which is what groups are here."""

    form: type[Any] = ModelForm
    search_fields = ["name"]
    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field: Any = super().formfield_for_manytomany(db_field, request, **kwargs)
        if db_field.name == "permissions":
            field.queryset = field.queryset.filter(content_type__app_label__in=_OUR_APPS)
            field.widget.attrs["size"] = 20
        return field
