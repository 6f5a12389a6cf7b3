"""Self-refreshing parts of a page.

htmx requests the page again, at the address of the page, and replaces the elements of `{% refreshed
%}` (templatetags/console.py). templates/admin/base_site.html then renders only the page's block
`refreshed`, without menu and header. The header HX-Target has the id of the element, so a view
leaves out the values not shown in this element.

A user who may not see the page any more gets the whole page reloaded: see ConsoleSite.admin_view.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

View = Callable[..., HttpResponse]


def is_refresh(request: HttpRequest) -> bool:
    """Return whether a script requests a part of a page, and not a browser the page."""
    return "HX-Request" in request.headers


def refreshed_part(request: HttpRequest) -> str:
    """Return the id of the replaced element; empty for a page."""
    return request.headers.get("HX-Target", "") if is_refresh(request) else ""


def reload_page() -> HttpResponse:
    return HttpResponse(headers={"HX-Refresh": "true"})


def reloading_if_refused(view: View, has_permission: Callable[[HttpRequest], bool]) -> View:
    """Answer a script with a reload of the page if the user was signed out or lost the right.

    A redirect to the login would be swapped into the page. A refused POST stays refused: a reload
    would lose the user's typed text.
    """

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not is_refresh(request):
            return view(request, *args, **kwargs)
        if not has_permission(request):
            return reload_page()
        try:
            return view(request, *args, **kwargs)
        except PermissionDenied:
            if request.method == "POST":
                raise
            return reload_page()

    return answer
