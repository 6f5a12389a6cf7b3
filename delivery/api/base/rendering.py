"""The format of answers: always JSON, whatever the Accept header says."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from delivery.incoming.bodies import ANY


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
