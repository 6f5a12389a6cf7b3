"""What all pages of the console have in common."""

from collections.abc import Callable, Iterable
from typing import Any

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

# Digits, which any bigint may have.
LONGEST_ID = 18
# What Django's own list filters append to the name of their field.
_APPENDED = ("", "exact", "isnull", "id__exact")
# How many rows have a page whose rows say much: it is drawn as fast as one looks.
FEW_ROWS = 25
# The box that selects a row, drawn once: a template for each of fifty rows took a tenth of the page's time.
_CHECKBOX = checkbox.render(ACTION_CHECKBOX_NAME, "{}")

Headers = Callable[[ChangeList], Iterable[dict[str, Any]]]


def _once_a_list(headers: Headers) -> Headers:
    def remembered(changelist: ChangeList) -> Iterable[dict[str, Any]]:
        known: dict[str, Any] = vars(changelist)
        if "headers" not in known:
            known["headers"] = list(headers(changelist))
        found: list[dict[str, Any]] = known["headers"]
        return found

    return remembered


# Unfold (0.91) makes the headers of a list anew for each of its rows: a fifth of the page's time.
unfold_list.result_headers = _once_a_list(unfold_list.result_headers)


def id_of(text: str) -> int | None:
    """Return the id that stands in an address, or None for what no row can have."""
    return int(text) if text.isdecimal() and len(text) <= LONGEST_ID else None


def person(request: HttpRequest) -> User:
    """Return who is signed in: nobody else comes as far as to a page of the console."""
    assert isinstance(request.user, User)
    return request.user


def actor_of(request: HttpRequest) -> str:
    return request.user.get_username()


class ConsoleAdmin(ModelAdmin):  # type: ignore[misc]  # Unfold has no types
    """What all pages have in common: no count of everything, and buttons that come back to where they were."""

    list_fullwidth = True
    list_per_page = 50
    list_filter_submit = True
    empty_value_display = "–"
    # Counting each choice of each filter would read the whole table for each.
    show_facets = ShowFacets.NEVER
    # Columns of buttons, which only those who may press them see.
    button_columns: tuple[str, ...] = ()
    # What an empty list says: what would be here, and what comes first.
    empty_text = ""

    @display(description=ModelAdmin.action_checkbox.short_description)  # type: ignore[untyped-decorator]
    def action_checkbox(self, obj: Any) -> SafeString:
        return format_html(_CHECKBOX, obj.pk)

    def may_change_rows(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def may_press(self, request: HttpRequest) -> bool:
        """Whether somebody sees the columns of buttons; each button asks again when it is pressed."""
        return self.may_change_rows(request)

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = list(super().get_list_display(request))
        return columns if self.may_press(request) else [c for c in columns if c not in self.button_columns]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the page has a filter for: by any other column one could ask for what one may not see."""
        filters = () if request is None else self.get_list_filter(request)
        # Of our own by their exact name; of Django's, which are named after a field, with what it appends to it and no
        # more: `groups` would lead to its users, and to their passwords.
        own = {each.parameter_name for each in filters if not isinstance(each, str)}
        name, _, appended = lookup.partition("__")
        return lookup in own or (name in filters and appended in _APPENDED)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Begin with what the link gives, but for relations to what is no id: nothing could be looked up by it."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        relations = {field.name for field in self.opts.get_fields() if field.is_relation}
        return {name: value for name, value in initial.items() if name not in relations or _are_ids(value)}

    def permitted(self, request: HttpRequest, object_id: int) -> Any:
        """Return the row a button is about; raises PermissionDenied without the right to change it."""
        if not self.may_change_rows(request):
            raise PermissionDenied
        return get_object_or_404(self.model, pk=object_id)

    def back(self, request: HttpRequest, message: str, *, level: int = messages.SUCCESS) -> HttpResponse:
        """Go back to the page the button stood on, and say there what happened."""
        self.message_user(request, message, level)
        target = request.POST.get("next", "")
        if not url_has_allowed_host_and_scheme(target, allowed_hosts=None):
            target = reverse("admin:index")
        return HttpResponseRedirect(target)


def _are_ids(given: Any) -> bool:
    return all(id_of(str(one)) is not None for one in (given if isinstance(given, list) else [given]))
