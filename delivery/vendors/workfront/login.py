"""Workfront's login, for clients with a login before they call the event subscriptions.

Workfront answers a login with a `sessionID`, which the client sends in each later call. Here it is
the manage key itself, so nothing is stored and a revoked key ends the sessions. The key is sent as
`apiKey`, or as the `password` of any `username`, in the query or in a form.
"""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.authentication import GRANTED
from delivery.api.base.views import ApiView
from delivery.incoming.bodies import parse_json, read_body
from delivery.incoming.keys import usable_key
from delivery.incoming.problems import Problem, problem_of
from subscriptions.models import Scope

_LONGEST_LOGIN = 16 * 1024


@extend_schema(exclude=True)
class WorkfrontLoginView(ApiView):
    authentication_classes = []
    permission_classes = []
    http_method_names = ["get", "post"]
    ignores_unknown_query = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # The query has a key, which no log of the request may show: it is parsed and removed.
        assert request.GET is not None
        request.META["QUERY_STRING"] = ""
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: Request) -> Response:
        """Return `{"data": {"sessionID": …}}`."""
        return _logged_in(request.query_params)

    def post(self, request: Request) -> Response:
        """Return the same; parameters may be in the query or in the body."""
        body = read_body(request._request, max_bytes=_LONGEST_LOGIN)
        return _logged_in({**request.query_params.dict(), **_fields(body)})

    def get_authenticate_header(self, request: Request) -> str:
        """Return a challenge: without it the framework answers 403 to an unknown key."""
        return 'Bearer realm="inturn"'

    def get_exception_handler(self) -> Any:
        return _refusal


def _fields(body: bytes) -> dict[str, Any]:
    """Return the fields of JSON or of a form, whatever the content type is."""
    if not body.lstrip().startswith(b"{"):
        return QueryDict(body).dict()
    given = parse_json(body)
    return given if isinstance(given, dict) else {}


def _logged_in(given: Mapping[str, Any]) -> Response:
    text = given.get("apiKey") or given.get("password")
    if not isinstance(text, str) or not text.strip():
        raise Problem(
            400, "invalid", "Send a manage key of Inturn as apiKey, or as the password of a login."
        )
    key = usable_key(text.strip(), now=timezone.now())
    if Scope.MANAGE not in GRANTED[key.scope]:
        raise Problem(403, "wrong-scope", f"This key has the scope {key.scope}; needed is manage.")
    return Response(
        {"data": {"sessionID": text.strip(), "userID": None}}, headers={"Cache-Control": "no-store"}
    )


def _refusal(error: Exception, _context: Mapping[str, Any]) -> Response | None:
    """Return an error as Workfront does: an object `error` in place of `data`."""
    problem = problem_of(error)
    if problem is None:
        return None
    content = {"error": {"message": str(problem.detail)}}
    return Response(content, status=problem.status_code, headers=problem.headers)
