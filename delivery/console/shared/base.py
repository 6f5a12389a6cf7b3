"""The base class of all console pages."""

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, checkbox
from unfold.decorators import display
from unfold.templatetags import unfold_list

from delivery.console.shared.times import with_times

# A number of digits fit for any bigint.
LONGEST_ID = 18
# Django's slug scripts. No form here has prepopulated fields, and they outweigh all other scripts
# of a page.
_PREPOPULATING = ("urlify", "prepopulate", "xregexp")
# The suffixes Django's own list filters append to a field's name.
_APPENDED = ("", "exact", "isnull", "id__exact")
# Rows of a page whose rows have much content: few enough to be rendered fast.
FEW_ROWS = 25
# The checkbox to select a row, rendered once: a template for each of fifty rows took a tenth of the
# page's time.
_CHECKBOX = checkbox.render(ACTION_CHECKBOX_NAME, "{}")

Headers = Callable[[ChangeList], Iterable[dict[str, Any]]]


def _cached_for_list(headers: Headers) -> Headers:
    def remembered(changelist: ChangeList) -> Iterable[dict[str, Any]]:
        known: dict[str, Any] = vars(changelist)
        if "headers" not in known:
            known["headers"] = list(headers(changelist))
        found: list[dict[str, Any]] = known["headers"]
        return found

    return remembered


# Unfold (0.91) recomputes the headers of a list for each row, which took a fifth of the page's
# time.
unfold_list.result_headers = _cached_for_list(unfold_list.result_headers)


def id_of(text: str) -> int | None:
    """Return the id in an address, or None if no row can have it."""
    return int(text) if text.isdecimal() and len(text) <= LONGEST_ID else None


def person(request: HttpRequest) -> User:
    """Return the signed-in user; the console's pages admit nobody else."""
    assert isinstance(request.user, User)
    return request.user


def actor_of(request: HttpRequest) -> str:
    return request.user.get_username()


class ReadOnly:
    """A page or a list whose rows nobody adds, changes or deletes there."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ConsoleAdmin(ModelAdmin):  # type: ignore[misc]  # Unfold has no types
    """A console page without a count of all rows, whose buttons return to the page they were on."""

    list_fullwidth = True
    list_per_page = 50
    list_filter_submit = True
    empty_value_display = "–"
    # Facets would read the whole table for each choice of each filter.
    show_facets = ShowFacets.NEVER
    # Columns of buttons, shown only to people who may press them.
    button_columns: tuple[str, ...] = ()
    # The text of an empty list: the purpose, and the first step.
    empty_text = ""

    @property
    def media(self) -> forms.Media:
        """Return the styles and scripts, without those unused by our pages."""
        found = super().media
        scripts = [each for each in found._js if not any(name in each for name in _PREPOPULATING)]
        return forms.Media(css=found._css, js=scripts)

    @display(  # type: ignore[untyped-decorator]
        description=ModelAdmin.action_checkbox.short_description
    )
    def action_checkbox(self, obj: Any) -> SafeString:
        return format_html(_CHECKBOX, obj.pk)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list under the sidebar's name."""
        title = {"title": self.admin_site.title_of_list(self.opts)}
        page: HttpResponse = super().changelist_view(request, title | (extra_context or {}))
        return page

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Name the form by purpose, such as *New policy*; Django names the mechanism."""
        row = context.get("original")
        if row is None:
            title = f"New {self.opts.verbose_name}"
        else:
            title = f"Edit {row}" if self.has_change_permission(request, row) else str(row)
        named = context | {"title": title, "subtitle": None}
        page: HttpResponse = super().render_change_form(request, named, *args, **kwargs)
        return page

    def may_change_rows(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def may_press(self, request: HttpRequest) -> bool:
        """Return whether to show the button columns; each button checks the right again."""
        return self.may_change_rows(request)

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = list(super().get_list_display(request))
        return (
            columns
            if self.may_press(request)
            else [c for c in columns if c not in self.button_columns]
        )

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow only lookups of the page's filters; others could reveal hidden columns."""
        filters = () if request is None else self.get_list_filter(request)
        # Our filters match by exact parameter name, Django's field filters only with a known
        # suffix: following `groups` would expose the group's users and their password hashes.
        own = {each.parameter_name for each in filters if not isinstance(each, str)}
        name, _, appended = lookup.partition("__")
        return lookup in own or (name in filters and appended in _APPENDED)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Start with the values in the link, except relations whose value is no id."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        relations = {field.name for field in self.opts.get_fields() if field.is_relation}
        return {
            name: value
            for name, value in initial.items()
            if name not in relations or _are_ids(value)
        }

    def permitted(self, request: HttpRequest, object_id: int) -> Any:
        """Return the row of a button.

        Raises PermissionDenied without the right to change it.
        """
        if not self.may_change_rows(request):
            raise PermissionDenied
        return get_object_or_404(self.model, pk=object_id)

    def back(
        self, request: HttpRequest, message: str, *, level: int = messages.SUCCESS
    ) -> HttpResponse:
        """Return to the page with the button, and show the message there."""
        self.message_user(request, with_times(message), level)
        target = request.POST.get("next", "")
        if not url_has_allowed_host_and_scheme(target, allowed_hosts=None):
            target = reverse("admin:index")
        return HttpResponseRedirect(target)


def _are_ids(value: Any) -> bool:
    return all(
        id_of(str(choice)) is not None for choice in (value if isinstance(value, list) else [value])
    )
