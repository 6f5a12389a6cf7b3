"""`/metrics`, with the duration of requests by view, method and status."""

import platform
import time
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase
from django.utils import timezone
from prometheus_client import Histogram, Info
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from rest_framework.exceptions import APIException

from config.env import LOCAL_HOSTS
from config.web.health import ASKED_HOST
from delivery.api.base.authentication import reads_everything
from delivery.api.metrics import register_metrics
from delivery.incoming.keys import usable_key
from delivery.incoming.problems import Problem, problem_of

_SECONDS = Histogram(
    "inturn_http_request_seconds",
    "How long requests took; a long poll is one for each look at the mailbox.",
    ["view", "method", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
Info("inturn_build", "The version of Inturn and of Python that this process runs.").info(
    {"version": settings.VERSION, "python": platform.python_version()}
)
register_metrics()
# Headers added by common proxies, besides X-Forwarded-….
_OF_PROXIES = frozenset(
    {
        "HTTP_CF_CONNECTING_IP",
        "HTTP_CLIENT_IP",
        "HTTP_FORWARDED",
        "HTTP_TRUE_CLIENT_IP",
        "HTTP_VIA",
        "HTTP_X_CLIENT_IP",
        "HTTP_X_CLUSTER_CLIENT_IP",
        "HTTP_X_ENVOY_EXTERNAL_ADDRESS",
        "HTTP_X_ORIGINAL_FORWARDED_FOR",
        "HTTP_X_REAL_IP",
    }
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def measure(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Measure requests, as the outermost middleware."""

    def measured(request: HttpRequest) -> HttpResponseBase:
        began_at = time.perf_counter()
        response = get_response(request)
        # Anonymous clients choose paths and methods, so all unknown ones share a label.
        view = request.resolver_match.view_name if request.resolver_match else ""
        method = request.method if request.method in _METHODS else ""
        observe_request(view, method or "", response.status_code, time.perf_counter() - began_at)
        return response

    return measured


def observe_request(view: str, method: str, status: int, seconds: float) -> None:
    """Record the duration of a request."""
    _of(view, method, status).observe(seconds)


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus with the figures of the process serving the request.

    Requests from this machine to this machine's address need no key, if INTURN_BASE_URL names this
    machine. A proxy's clients and other machines send a key with scope read or manage as Bearer
    token.
    """
    try:
        if not (_is_local(request) or _has_key(request)):
            detail = (
                "Metrics are for this machine, or for a key with scope read: Authorization: "
                "Bearer <key>."
            )
            raise Problem(
                401, "no-key", detail, headers={"WWW-Authenticate": 'Bearer realm="inturn"'}
            )
    except APIException as error:
        refused = problem_of(error)
        assert refused is not None
        return refused.response()
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


def _is_local(request: HttpRequest) -> bool:
    """Return whether no proxy took part: it adds a header, or passes the host on.

    The plainest nginx does neither, so a public base URL suffices to expect a proxy.
    """
    if _host_of_base_url() not in LOCAL_HOSTS:
        return False
    if any(key in _OF_PROXIES or key.startswith("HTTP_X_FORWARDED") for key in request.META):
        return False
    asked = request.META.get(ASKED_HOST, "")
    is_to_this_machine = not asked or split_domain_port(asked)[0] in LOCAL_HOSTS
    return is_to_this_machine and ip_address(request.META["REMOTE_ADDR"]).is_loopback


def _host_of_base_url() -> str:
    return split_domain_port(urlsplit(settings.ENVIRONMENT.base_url).netloc)[0]


def _has_key(request: HttpRequest) -> bool:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        return False
    return reads_everything(usable_key(text.strip(), now=timezone.now()))


@lru_cache(maxsize=4096)
def _of(view: str, method: str, status: int) -> Histogram:
    return _SECONDS.labels(view=view, method=method, status=status)
