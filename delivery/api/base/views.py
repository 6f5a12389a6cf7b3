"""The base class of all API views."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import orjson
from django.http.request import QueryDict
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from delivery.api.base.pages import NoQuery, known_parameters, read_query
from delivery.api.base.schema import ApiSchema
from delivery.api.base.strict import Strict
from delivery.incoming.bodies import ANY, JSONBody
from delivery.incoming.problems import problem_response
from subscriptions.models import Scope

MANAGE: frozenset[str] = frozenset({Scope.MANAGE})
READ: frozenset[str] = frozenset({Scope.READ})
PUBLISH: frozenset[str] = frozenset({Scope.PUBLISH})
FETCH: frozenset[str] = frozenset({Scope.FETCH})


class JSONAnswer(BaseRenderer):
    """Times are written as RFC 3339 in UTC; an `orjson.Fragment` is copied byte by byte."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if data is None:
            return b""
        try:
            return orjson.dumps(data, option=orjson.OPT_UTC_Z)
        except TypeError:
            # Integers over 64 bits, which samples may contain.
            return json.dumps(data, ensure_ascii=False).encode()


class JSONAlways(BaseContentNegotiation):
    """Every answer has one format: a publisher must not lose a message by an odd Accept header."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        wanted = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type in (wanted, ANY)), None)


class ApiView(APIView):
    """Strict about the query, JSON both ways, problem documents for errors.

    `query_classes` has the query parameters by action (of a view set) or by method in lower case;
    other actions take none. Unknown parameters are refused, unless `ignores_unknown_query`: the
    clients of other systems send parameters of their own. `limited_actions` keep to the rows within
    the key's reach.
    """

    required_scopes: ClassVar[frozenset[str]] = MANAGE
    limited_actions: ClassVar[frozenset[str]] = frozenset()
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {}
    ignores_unknown_query: ClassVar[bool] = False
    parser_classes = [JSONBody]
    renderer_classes = [JSONAnswer]
    content_negotiation_class = JSONAlways
    http_method_names = ["get", "head", "post", "patch", "delete"]
    schema = ApiSchema()
    query: Mapping[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        method = (request.method or "").lower()
        if method not in self.http_method_names or not hasattr(self, method):
            # Answered 405, whatever the query.
            return
        action = getattr(self, "action", None) or method
        query_class = self.query_classes.get(action, NoQuery)
        parameters: QueryDict = request.query_params
        if self.ignores_unknown_query:
            parameters = known_parameters(parameters, query_class)
        self.query = read_query(parameters, query_class)

    def get_exception_handler(self) -> Any:
        return problem_response
