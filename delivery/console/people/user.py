"""Users of the console, and the roles with rights for them."""

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminRelatedFieldWrapperWidget,
    UnfoldAdminSelect2MultipleWidget,
)

from delivery.console.people import rights, role_words
from delivery.console.shared.base import actor_of, person
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.times import ago
from subscriptions.changes import record_new_password
from subscriptions.models import Publisher

# Django's own admin module registers it on import.
admin.site.unregister(User)


class RolesField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Roles as checkboxes, each with the rights."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget

    def label_from_instance(self, obj: Group) -> str:
        return f"{obj.name}: {role_words.role_summary(obj)}"


def roles_field(grantor: User) -> RolesField:
    """Return a field with the roles open to the giver."""
    grantable = rights.roles_within(grantor)
    help_text = "Without a role a user can sign in, but sees nothing."
    if Group.objects.exclude(pk__in=grantable).exists():
        help_text += " You can grant only roles with rights that you have yourself."
    shown = grantable.order_by("name").prefetch_related("permissions__content_type")
    return RolesField(shown, label="Roles", required=False, help_text=help_text)


def publishers_field() -> forms.ModelMultipleChoiceField:  # type: ignore[type-arg]
    return forms.ModelMultipleChoiceField(
        Publisher.objects.order_by("name"),
        label="Developer of",
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget,
        help_text="With the role Developers: sees the messages and deliveries of these "
        "publishers, and no others.",
    )


def with_new_publisher(widget: forms.Widget, *, grantor: User) -> forms.Widget:
    """Return the select of publishers with *New publisher* below it, for those who may add one."""
    to_publisher = Publisher.developers.through._meta.get_field("publisher").remote_field
    may_add = grantor.has_perm("subscriptions.add_publisher")
    wrapped: forms.Widget = UnfoldAdminRelatedFieldWrapperWidget(
        widget, to_publisher, admin.site, can_add_related=may_add
    )
    return wrapped


class PasswordState(forms.Widget):
    """Whether there is a password, instead of the algorithm, salt and hash."""

    read_only = True

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        is_set = bool(value) and is_password_usable(value)
        return format_html(
            '<p>{} <a class="inturn-button" href="../password/">Change the password</a></p>',
            "A password is set." if is_set else "No password is set.",
        )

    def id_for_label(self, id_: str) -> str:
        return ""


class UserForm(UserChangeForm):  # type: ignore[misc]  # Unfold has no types
    """`request_user` fills in the form; people cannot lock themselves out.

    Only a user who may see all messages may set which publishers' messages another sees.
    """

    publishers = publishers_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "password" in self.fields:
            self.fields["password"].widget = PasswordState()
            self.fields["password"].help_text = ""
        if rights.sees_all_messages(self.request_user):
            self.initial["publishers"] = self.instance.publishers.all()
            select = self.fields["publishers"]
            select.widget = with_new_publisher(select.widget, grantor=self.request_user)
        else:
            del self.fields["publishers"]

    request_user: User

    def clean_is_active(self) -> bool:
        is_active: bool = self.cleaned_data["is_active"]
        if not is_active and self.instance.pk == self.request_user.pk:
            raise ValidationError("You would lock out yourself; let another administrator do it.")
        return is_active


@admin.register(User)
class UserAdmin(RecordedAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    """Rights come from roles: single rights are not granted to a person."""

    form = UserForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "roles", "email", "is_active", "last_seen"]
    list_filter = ["is_active", "groups"]
    filter_horizontal = ()
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("Permissions", {"fields": ["is_active", "groups", "publishers", "is_superuser"]}),
    ]
    add_fieldsets = [
        (None, {"fields": ["username", "password1", "password2"]}),
        ("Permissions", {"fields": ["groups"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows: QuerySet[User] = super().get_queryset(request).prefetch_related("groups")
        return rows

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm[Any]]:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.request_user = request.user
        return form  # type: ignore[no-any-return]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "groups":
            # Without Django's links to create and change roles: roles have their own page.
            return roles_field(person(request))
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "is_superuser":
            field.label = "Superuser: all rights"
            field.help_text = (
                "The first administrator has it, so that the last "
                "administrator cannot be locked out."
            )
        if db_field.name == "is_active":
            field.label = "May sign in"
            field.help_text = "Untick it instead of deleting, so that the logs keep this name."
        return field

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Leave out the publishers for users who may not name any."""
        fieldsets = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj) and rights.sees_all_messages(person(request)):
            return fieldsets
        return [
            (title, {"fields": [name for name in part["fields"] if name != "publishers"]})
            for title, part in fieldsets
        ]

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        if "publishers" in form.cleaned_data:
            form.instance.publishers.set(form.cleaned_data["publishers"])
        super().save_related(request, form, formsets, change)

    def recorded_state(self, row: User) -> dict[str, Any]:
        publishers = sorted(
            str(publisher) for publisher in Publisher.objects.filter(developers=row)
        )
        return super().recorded_state(row) | {"publishers": publishers}

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        """Let only superusers set `is_superuser`, because nobody grants more than they have."""
        fields = list(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else [*fields, "is_superuser"]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        is_oneself = obj is not None and obj.pk == request.user.pk
        return (
            bool(super().has_delete_permission(request, obj))
            and not is_oneself
            and _may_touch(request, obj)
        )

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        # The console is the only use of an account, so every new user may sign in.
        obj.is_staff = obj.is_staff or not change
        super().save_model(request, obj, form, change)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        with transaction.atomic():
            response = super().user_change_password(request, id, form_url)
            if response.status_code == HTTPStatus.FOUND:
                record_new_password(User.objects.get(pk=id), actor=actor_of(request))
        return response

    @admin.display(description="roles")
    def roles(self, row: User) -> str:
        named = [group.name for group in row.groups.all()]
        return ", ".join(["everything"] if row.is_superuser else named) or "none"

    @admin.display(description="last login", ordering="last_login")
    def last_seen(self, row: User) -> SafeString | str:
        return ago(row.last_login, now=timezone.now())


def _may_touch(request: HttpRequest, row: User | None) -> bool:
    """Return whether the user has all rights of the other.

    Otherwise a new password would give the user the missing rights.
    """
    return row is None or not rights.has_more(row, than=person(request))
