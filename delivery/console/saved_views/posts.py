"""The buttons of saved views: save the present filters under a name, rename, delete."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from delivery.console.saved_views.views import (
    MOST,
    list_of,
    may_change_view,
    may_share_views,
    tidy_query,
)
from delivery.console.shared.base import person
from subscriptions.models import SavedView

_TAKEN = "You have a view with the name {} already."


@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """Save the filters of a list under a name, or replace those of the user's view of that name."""
    list_name = request.POST.get("list", "")
    if list_of(list_name, request) is None:
        raise Http404
    name, query = _name(request), tidy_query(request.POST.get("query", ""))
    is_shared = bool(request.POST.get("shared"))
    if is_shared and not may_share_views(request.user):
        raise PermissionDenied
    own = SavedView.objects.filter(owner=person(request), list_name=list_name)
    if not name or len(query) > SavedView.MAX_QUERY_LENGTH:
        text = "Give the view a name." if not name else "These filters are too long to be saved."
        messages.error(request, text)
    elif not own.filter(name=name).exists() and own.count() >= MOST:
        messages.error(request, f"You have {MOST} views of this list: delete one first.")
    else:
        SavedView.objects.update_or_create(
            owner=person(request),
            list_name=list_name,
            name=name,
            defaults={"query": query, "is_shared": is_shared},
        )
        messages.success(request, f"The view {name} is saved.")
    return _to_list(list_name, query)


@require_POST
def rename_view(request: HttpRequest, object_id: int) -> HttpResponse:
    view = _changed(request, object_id)
    if name := _name(request):
        try:
            with transaction.atomic():
                SavedView.objects.filter(pk=view.pk).update(name=name)
            messages.success(request, f"The view {view.name} is now {name}.")
        except IntegrityError:
            messages.error(request, _TAKEN.format(name))
    return _to_list(view.list_name, view.query)


@require_POST
def delete_view(request: HttpRequest, object_id: int) -> HttpResponse:
    """Delete the view; the filters stay, so it can be saved again."""
    view = _changed(request, object_id)
    SavedView.objects.filter(pk=view.pk).delete()
    messages.success(request, f"The view {view.name} is deleted.")
    return _to_list(view.list_name, view.query)


def _changed(request: HttpRequest, object_id: int) -> SavedView:
    """Return the view; another person's is not found, a shared one may be forbidden."""
    view = get_object_or_404(SavedView, pk=object_id)
    if not may_change_view(request.user, view):
        if not view.is_shared:
            raise Http404
        raise PermissionDenied
    return view


def _name(request: HttpRequest) -> str:
    return " ".join(request.POST.get("name", "").replace("\0", "").split())[
        : SavedView.MAX_NAME_LENGTH
    ]


def _to_list(list_name: str, query: str) -> HttpResponse:
    address = reverse(f"admin:{list_name.replace('.', '_')}_changelist")
    return HttpResponseRedirect(f"{address}?{query}" if query else address)
