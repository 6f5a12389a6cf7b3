"""The page and the banner of the switch for all sending."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from delivery.console.holding.form import HoldForm, ReleaseForm
from delivery.console.holding.holds import sending_held
from delivery.console.shared.base import actor_of
from delivery.console.shared.rights import may_hold_all
from delivery.support import held_objects, toggle


def sending_banner(request: HttpRequest) -> HttpResponse:
    """Return the banner of every page while all sending is HELD, otherwise nothing."""
    shown = {"sending": sending_held(), "may_hold_all": may_hold_all(request.user)}
    return render(request, "console/holding/sending_banner.html", shown)


def sending_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Show whether all sending is HELD, with the button to change it."""
    if not may_hold_all(request.user):
        raise PermissionDenied
    return render(
        request,
        "console/holding/sending.html",
        context | {"title": "All sending", "sending": sending_held()},
    )


@require_POST
def hold_all(request: HttpRequest) -> HttpResponse:
    if not may_hold_all(request.user):
        raise PermissionDenied
    form = HoldForm(request.POST, now=timezone.now())
    if not form.is_valid():
        return _back(request, f"Nothing was done. {form.mistakes}", level=messages.ERROR)
    if not toggle.hold_owner(
        held_objects.installation(), actor=actor_of(request), release=form.release
    ):
        return _back(request, "All sending was HELD already.", level=messages.WARNING)
    return _back(
        request,
        f"All sending is HELD{form.words}: messages are stored, but not sent or handed out.",
    )


@require_POST
def release_all(request: HttpRequest) -> HttpResponse:
    if not may_hold_all(request.user):
        raise PermissionDenied
    form = ReleaseForm(request.POST)
    if not form.is_valid():
        return _back(request, f"Nothing was done. {form.mistakes}", level=messages.ERROR)
    toggle.activate_owner(
        held_objects.installation(),
        actor=actor_of(request),
        catch_up_rate=form.cleaned_data["catch_up_rate"],
    )
    return _back(request, "All sending is released: waiting deliveries are sent in order.")


def _back(request: HttpRequest, text: str, *, level: int = messages.SUCCESS) -> HttpResponse:
    messages.add_message(request, level, text)
    return HttpResponseRedirect(reverse("admin:sending"))
