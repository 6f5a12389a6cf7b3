"""`/metrics`, and how long requests take, which is told there by view, method and status."""

import time
from collections.abc import Callable
from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from prometheus_client import Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

_SECONDS = Histogram(
    "inturn_http_request_seconds",
    "How long requests took; a long poll is one for each look at the mailbox.",
    ["view", "method", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def measure(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware, the outermost."""

    def measured(request: HttpRequest) -> HttpResponseBase:
        began_at = time.perf_counter()
        response = get_response(request)
        # Strangers choose paths and methods: what is unknown is one.
        view = request.resolver_match.view_name if request.resolver_match else ""
        method = request.method if request.method in _METHODS else ""
        _of(view, method or "", response.status_code).observe(time.perf_counter() - began_at)
        return response

    return measured


def metrics(_request: HttpRequest) -> HttpResponse:
    """Answer Prometheus; of what a process counts, by the one that was asked."""
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


@lru_cache(maxsize=4096)
def _of(view: str, method: str, status: int) -> Histogram:
    return _SECONDS.labels(view=view, method=method, status=status)
