"""The OpenAPI document, generated once per process."""

import threading
from functools import lru_cache
from typing import Any

from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response

# All views share one ApiSchema object, which is bound to one view at a time during generation.
_GENERATING = threading.Lock()


class SchemaView(SpectacularAPIView):
    def _get_schema_response(self, request: Request) -> Response:
        return Response(schema_document())


def schema_document() -> dict[str, Any]:
    with _GENERATING:
        return _generated()


@lru_cache(maxsize=1)
def _generated() -> dict[str, Any]:
    generator = SchemaView.generator_class()
    generated: dict[str, Any] = generator.get_schema(  # type: ignore[no-untyped-call]
        request=None, public=True
    )
    return generated
