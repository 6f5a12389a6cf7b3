"""Secrets shown exactly once, on the page after they were created."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from subscriptions.values.encryption import decrypt, encrypt

_SESSION_KEY = "shown_once"


def show_once(
    request: HttpRequest, secret: str, *, what: str, advice: str, next_url: str
) -> HttpResponse:
    """Redirect to a page with the secret; the session keeps it encrypted until then."""
    kept = {"secret": secret, "what": what, "advice": advice, "next_url": next_url}
    request.session[_SESSION_KEY] = encrypt(kept)
    return HttpResponseRedirect(reverse("admin:shown_once"))


@never_cache
def shown_once(request: HttpRequest) -> HttpResponse:
    from django.contrib import admin

    token = request.session.pop(_SESSION_KEY, None)
    kept = decrypt(token) if token else {}
    title = kept.get("what", "Already shown")
    context = admin.site.each_context(request) | {"title": title, "shown": kept}
    return render(request, "console/shared/shown_once.html", context)
