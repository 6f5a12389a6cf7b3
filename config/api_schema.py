"""The OpenAPI document, generated once per process."""

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.http import HttpResponse
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

# All views share one ApiSchema object, which is bound to one view at a time during generation.
_GENERATING = threading.Lock()


class SchemaView(SpectacularAPIView):
    def _get_schema_response(self, request: Request) -> HttpResponse:
        renderer = request.accepted_renderer
        # The stubs take a class for unhashable.
        text = _rendered(type(renderer))  # type: ignore[arg-type]
        return HttpResponse(text, content_type=f"{renderer.media_type}; charset=utf-8")


@lru_cache(maxsize=4)
def _rendered(renderer: Callable[[], BaseRenderer]) -> bytes:
    # Anybody may read it, and rendering takes a tenth of a second.
    rendered: str | bytes = renderer().render(schema_document(), None, {})
    return rendered.encode() if isinstance(rendered, str) else rendered


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
