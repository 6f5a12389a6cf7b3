"""Saved views of a list: which a user sees and may edit.

Everybody saves views of the lists open to them, for themselves. People who may change deliveries
also share them, and rename and delete shared views of others.
"""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q
from django.http import HttpRequest, QueryDict
from django.utils.http import urlencode

from delivery.console.shared.filter_bar import filter_query
from delivery.console.shared.parameters import OF_PAGE
from delivery.console.shared.rights import Person
from subscriptions.models import SavedView

# More would hide the list.
MOST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """A saved view above the list; `may_change` is for the person who looks at it."""

    view: SavedView
    is_current: bool
    may_change: bool
    is_own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownViews:
    """The saved views of a list; `query` has the present filters, for a new view."""

    views: list[ShownView]
    list_name: str
    query: str
    may_share: bool

    @property
    def current(self) -> ShownView | None:
        return next((shown for shown in self.views if shown.is_current), None)


def shown_views(user: Person, changelist: ChangeList) -> ShownViews:
    list_name, query = changelist.model._meta.label_lower, filter_query(changelist)
    may_share = may_share_views(user)
    rows = SavedView.objects.filter(Q(owner=user.pk) | Q(is_shared=True), list_name=list_name)
    return ShownViews(
        views=[
            ShownView(
                view=row,
                is_current=row.query == query,
                is_own=row.owner_id == user.pk,
                may_change=may_change_view(user, row),
            )
            for row in rows[:MOST]
        ],
        list_name=list_name,
        query=query,
        may_share=may_share,
    )


def may_share_views(user: Person) -> bool:
    return user.has_perm("delivery.change_delivery")


def may_change_view(user: Person, view: SavedView) -> bool:
    return view.owner_id == user.pk or (view.is_shared and may_share_views(user))


def list_of(list_name: str, request: HttpRequest) -> ModelAdmin[Any] | None:
    """Return the list's admin if there is such a list and the user may see it."""
    for model, model_admin in admin.site._registry.items():
        if model._meta.label_lower == list_name:
            return model_admin if model_admin.has_view_permission(request) else None
    return None


def tidy_query(text: str) -> str:
    """Return the filters in the order in which lists compare them, without the page."""
    given = QueryDict(text)
    return urlencode(
        [(name, str(given[name])) for name in sorted(given) if given[name] and name not in OF_PAGE]
    )
