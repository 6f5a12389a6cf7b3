"""Roles in the console, which are Django's groups."""

from copy import copy
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.models import Group
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.console.people import rights, role_words
from delivery.console.people.role_form import RightsField, RoleForm
from delivery.console.shared.base import person
from delivery.console.shared.recorded_admin import RecordedAdmin

# Django's own admin module registers it on import.
admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(RecordedAdmin, DjangoGroupAdmin):
    empty_text = "A role is a set of rights."
    form: type[Any] = RoleForm
    list_display = ["name", "in_one_line", "people"]
    search_fields = ["name"]
    filter_horizontal = ()
    readonly_fields = ["in_words"]

    def __init__(self, model: type[Group], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        # A copy for this page only: Django's own model keeps the name.
        self.opts = copy(model._meta)
        self.opts.verbose_name, self.opts.verbose_name_plural = "role", "roles"

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        found: ChangeList = super().get_changelist_instance(request)
        found.opts = self.opts
        return found

    def get_fieldsets(self, request: HttpRequest, obj: Group | None = None) -> Any:
        """Show the sentences to tick; users who may not change the role see its own as text."""
        may_change = self.has_change_permission(request, obj) or obj is None
        return [
            (None, {"fields": ["name", "sentences" if may_change else "in_words"]}),
            ("All rights", {"fields": ["permissions"], "classes": ["collapse"]}),
        ]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.grantor = person(request)
        return form

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        rows: QuerySet[Group] = super().get_queryset(request)
        return rows.annotate(n=Count("user")).prefetch_related("permissions__content_type")

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "permissions":
            return RightsField(rights.rights_of(person(request)), label="Rights", required=False)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and _may_touch(request, obj)

    @admin.display(description="rights")
    def in_one_line(self, row: Group) -> str:
        summary = role_words.role_summary(row)
        return f"{summary[0].upper()}{summary[1:]}"

    @admin.display(description="Summary")
    def in_words(self, row: Group) -> SafeString:
        sentences = role_words.role_sentences(role_words.names_of(row.permissions.all()))
        lines = format_html_join("", "<li>{}</li>", ((sentence,) for sentence in sentences))
        return format_html('<ul class="inturn-sentences">{}</ul>', lines)

    @admin.display(description="people", ordering="n")
    def people(self, row: Any) -> SafeString:
        url = reverse("admin:auth_user_changelist")
        return format_html(
            '<a class="inturn-link" href="{}?groups__id__exact={}">{}</a>', url, row.pk, row.n
        )


def _may_touch(request: HttpRequest, row: Group | None) -> bool:
    """Return whether the user has all rights of the role; only such a user may change it."""
    return row is None or not rights.has_more(row, than=person(request))
