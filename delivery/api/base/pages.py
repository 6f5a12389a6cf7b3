"""Keyset pagination of lists: `limit` rows at a time, and a link to the next page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.http.request import QueryDict
from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.strict import Strict, Text
from delivery.incoming.problems import invalid_field
from subscriptions.values.names import MAX_NAME_LENGTH

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
MAX_ID = 2**63 - 1


class NoQuery(Strict):
    """No query parameters."""


class ByName(Strict):
    """The query parameters of a list ordered by name."""

    limit = serializers.IntegerField(
        default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT, help_text="How many."
    )
    after = Text(
        required=False,
        max_length=MAX_NAME_LENGTH,
        help_text="Set by `next`: the name to continue from.",
    )


class ById(Strict):
    """The query parameters of a list ordered by id."""

    limit = serializers.IntegerField(
        default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT, help_text="How many."
    )
    after = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_ID,
        help_text="Set by `next`: the id to continue from.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOrder:
    """A unique column to order by, and the direction."""

    column: str
    newest_first: bool = False


class KeysetPages(BasePagination):
    """The page requested by `view.query`, in `view.order`."""

    _next: str | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        order: PageOrder = view.order
        if (key := view.query.get("after")) is not None:
            following = f"{order.column}__{'lt' if order.newest_first else 'gt'}"
            queryset = queryset.filter(**{following: self.value_of(key)})
        limit: int = view.query["limit"]
        # Read a row more than requested, to see whether another page follows.
        rows = list(
            queryset.order_by(f"-{order.column}" if order.newest_first else order.column)[
                : limit + 1
            ]
        )
        if len(rows) > limit:
            last = getattr(rows[limit - 1], order.column)
            self._next = _following(request, self.key_of(last))
        return rows[:limit]

    def key_of(self, value: Any) -> Any:
        """Return the column's value by `after` in the last row of a page."""
        return value

    def value_of(self, key: Any) -> Any:
        """Return the column's value of which `after` says this."""
        return key

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self._next})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {
                    "type": "string",
                    "format": "uri",
                    "nullable": True,
                    "description": "The next page.",
                },
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        # The view's query serializer documents them.
        return []


def read_query(parameters: QueryDict, serializer_class: type[Strict]) -> Mapping[str, Any]:
    """Return the validated query parameters; unknown and repeated parameters are refused."""
    if not parameters:
        return _defaults(serializer_class)
    for name, values in parameters.lists():
        if len(values) > 1:
            raise invalid_field(name, "This parameter occurs more than once; give it once.")
    if serializer_class.is_remembered:
        return _remembered(serializer_class, tuple(parameters.items()))
    return _validated(serializer_class, parameters.dict())


def known_parameters(parameters: QueryDict, serializer_class: type[Strict]) -> QueryDict:
    """Return the query parameters without those unknown to the serializer."""
    known = serializer_class().fields
    kept = QueryDict(mutable=True)
    for name, values in parameters.lists():
        if name in known:
            kept.setlist(name, values)
    return kept


@cache
def _defaults(serializer_class: type[Strict]) -> Mapping[str, Any]:
    """Return the parameters of a call without a query.

    Most calls have none, and creating a serializer takes longer than many of them. A refusal is not
    cached.
    """
    return _validated(serializer_class, {})


@lru_cache(maxsize=256)
def _remembered(
    serializer_class: type[Strict], parameters: tuple[tuple[str, str], ...]
) -> Mapping[str, Any]:
    return _validated(serializer_class, dict(parameters))


def _validated(serializer_class: type[Strict], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    query = serializer_class(data=parameters)
    query.is_valid(raise_exception=True)
    return MappingProxyType(query.validated_data)


def _following(request: Request, key: Any) -> str:
    parameters = request.query_params.copy()
    parameters["after"] = str(key)
    # Not from the request, which says http behind a proxy for TLS.
    return f"{settings.ENVIRONMENT.base_url}{request.path}?{parameters.urlencode()}"
