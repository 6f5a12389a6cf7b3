"""Django's own error answers: problem documents or TeamForge's envelope for the clients of APIs.

Users of the console get a page, but a plain line if the server is at fault: a page might need the
failed part. Everybody else gets a plain line.
"""

import sys
from http import HTTPStatus

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.csrf import csrf_exempt

from config.web.refusals import refusal_of
from delivery.incoming.problems import Problem, problem_of, unexpected_error
from delivery.vendors.teamforge.addresses import is_teamforge_address

API_PREFIX = "/api/"
# Of the Event Queue's and Workfront's clients.
FOREIGN_PREFIXES = ("/event/queue/", "/attask/")
CONSOLE_PREFIXES = ("/admin/", "/guide/")


# Django gives these three an `exception` by name.
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    text = "The request cannot be understood; check host and address."
    if isinstance(exception, TooManyFieldsSent):
        text = (
            f"The form or address has more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} values. "
            "Choose fewer at a time, or make the change by the API. Nothing was changed."
        )
    return _answer(request, Problem(400, "bad-request", text))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    text = "You do not have access to this page. Ask an administrator."
    if request.path.startswith(API_PREFIX):
        text = "This is not allowed."
    return _answer(request, Problem(403, "forbidden", text))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return nothing_here(request)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 503 for a database error, even in a middleware, otherwise 500; never a traceback."""
    return _answer(request, problem_of(sys.exc_info()[1]) or unexpected_error())


@csrf_exempt
def nothing_here(request: HttpRequest) -> HttpResponse:
    """Answer 404. It is also a URL under /api/, because DEBUG would show another page there."""
    text = f"There is nothing at {request.path[:200]}."
    if request.path.startswith(API_PREFIX):
        text += " /api/docs/ lists the addresses of the API."
    return _answer(request, Problem(404, "not-found", text))


def _answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    is_of_api = request.path.startswith((API_PREFIX, *FOREIGN_PREFIXES))
    if is_of_api or is_teamforge_address(request.path):
        return refusal_of(request.path, problem)
    if problem.status_code < HTTPStatus.INTERNAL_SERVER_ERROR and _is_of_console(request):
        return _page(request, problem)
    phrase = HTTPStatus(problem.status_code).phrase
    return HttpResponse(
        f"{problem.status_code} {phrase}\n{problem.detail}\n",
        status=problem.status_code,
        content_type="text/plain; charset=utf-8",
        headers=problem.headers,
    )


def _is_of_console(request: HttpRequest) -> bool:
    """Return whether a browser of a signed-in user shows the answer, and not a script of a page."""
    user = getattr(request, "user", None)
    return (
        request.path.startswith(CONSOLE_PREFIXES)
        and request.accepts("text/html")
        and "HX-Request" not in request.headers
        and user is not None
        and user.is_staff
    )


def _page(request: HttpRequest, problem: Problem) -> HttpResponse:
    shown = {
        **admin.site.each_context(request),
        "title": HTTPStatus(problem.status_code).phrase,
        "status_code": problem.status_code,
        "detail": problem.detail,
    }
    page = TemplateResponse(
        request,
        "console/shared/problem.html",
        shown,
        status=problem.status_code,
        headers=problem.headers,
    )
    return page.render()
