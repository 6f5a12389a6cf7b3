"""Requests answered without Django: plain posts and batches.

`delivery.incoming.short_way` stores them.
"""

import time
from functools import lru_cache
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware

from config.web.answers import Header
from config.web.environ import Environ
from config.web.metrics import observe_request
from delivery.api.base.views import ApiView
from delivery.api.batch import BatchView
from delivery.api.publish import PublishView
from delivery.incoming.short_way.intake import Intake
from delivery.lifecycle.traces import flush_traces
from delivery.publishing.plain import WhyNotPlain


class Publishing:
    """The fast path of a web process. The requests are counted like those of the view."""

    def __init__(self) -> None:
        self._intake = Intake()

    async def answer(self, environ: Environ, body: bytes) -> tuple[int, list[Header], bytes] | None:
        """Return the 202 to a plain post, as its view would; None leaves the post to the view."""
        began_at = time.perf_counter()
        published = await self._intake.publish(environ, body)
        if isinstance(published, WhyNotPlain):
            return None
        view = BatchView if published.is_batch else PublishView
        name = f"{view.__module__}.{view.__qualname__}"
        observe_request(name, "POST", HTTPStatus.ACCEPTED, time.perf_counter() - began_at)
        return HTTPStatus.ACCEPTED, _headers(view, _is_secure(environ)), published.body

    def close(self) -> None:
        self._intake.close()
        flush_traces()


def _is_secure(environ: Environ) -> bool:
    proxy = settings.SECURE_PROXY_SSL_HEADER
    by_proxy = proxy is not None and environ.get(proxy[0]) == proxy[1]
    return by_proxy or environ["wsgi.url_scheme"] == "https"


@lru_cache(maxsize=4)
def _headers(view: type[ApiView], is_secure: bool) -> list[Header]:
    """Return the headers that Django would send, except the length, which the web server adds."""
    request = HttpRequest()
    request.META["wsgi.url_scheme"] = "https" if is_secure else "http"
    request.META |= {"SERVER_NAME": "", "SERVER_PORT": ""}
    response = HttpResponse(
        content_type="application/json", headers={"Allow": ", ".join(view().allowed_methods)}
    )
    SecurityMiddleware(lambda _: response)(request)
    return list(response.items())
