"""The web server's way to the committers: the posts that take it, and their answers."""

import asyncio
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.security import SecurityMiddleware

from delivery.api.base.patterns import NAME
from delivery.api.base.problems import Problem
from delivery.api.base.views import ApiView
from delivery.api.batch import BatchView
from delivery.api.batch_items import MAX_ITEMS
from delivery.api.publish import PublishView
from delivery.ingest.committer import Committer
from delivery.ingest.plain import PARTIAL
from delivery.ingest.posts import MOST_BYTES_TOGETHER, Post, Posts

COMMITTERS = 2
# A longer body takes longer to match, and its neighbours would wait for it.
LONGEST_BODY = 64 * 1024
LONGEST_BATCH = MOST_BYTES_TOGETHER
# A name of the longest kind, with a port.
LONGEST_HOST = 253 + len(":65535")

BATCH = "/api/v1/messages:batch"

Headers = list[tuple[str, str]]

_PATH = re.compile(rf"/api/v1/events/(?P<event_type>{NAME})/messages\Z")
# Messages with these headers take more than one statement.
_NOT_PLAIN = ("HTTP_CALLBACKURL", "HTTP_DESTINATION")


@dataclass(frozen=True, slots=True)
class AcceptedResponse:
    """A 202, and the name of the view that would have returned it."""

    view: str
    headers: Headers
    body: bytes


class Intake:
    """The intake of one web process and its event loop."""

    def __init__(self) -> None:
        self._posts = Posts()
        self._threads: list[threading.Thread] = []

    async def publish(self, environ: dict[str, Any], body: bytes) -> AcceptedResponse | None:
        """Publish a plain post; None leaves it to its view.

        Raises Problem 503 if too many wait, or if the database went away meanwhile.
        """
        post = _post(environ, body)
        if post is None:
            return None
        if not self._threads:
            self._start()
        if not self._posts.put(post):
            detail = (
                "Too many messages are being published just now. Repeat the request in a moment."
            )
            raise Problem(503, "too-many-posts", detail, headers={"Retry-After": "1"})
        done = await post.done
        if isinstance(done, Problem):
            raise done
        return None if done is None else _published(post, done)

    def close(self) -> None:
        """Store the waiting posts, and end."""
        self._posts.close()
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        for number in range(COMMITTERS):
            # A daemon thread: a process that fails must end.
            thread = threading.Thread(
                target=Committer(self._posts).run, name=f"committer {number + 1}", daemon=True
            )
            self._threads.append(thread)
            thread.start()


def _post(environ: dict[str, Any], body: bytes) -> Post | None:
    scheme, _, key = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if environ["REQUEST_METHOD"] != "POST" or scheme.lower() != "bearer" or not key.strip():
        return None
    if not _is_host(environ.get("HTTP_HOST", "")):
        return None
    event_type = None
    if environ["PATH_INFO"] == BATCH:
        messages = _messages(environ, body)
    else:
        event_type = _event_type(environ, body)
        messages = 0 if event_type is None else 1
    if not messages:
        return None
    done = asyncio.get_running_loop().create_future()
    return Post(key.strip(), event_type, environ, body, done, messages)


def _event_type(environ: Mapping[str, Any], body: bytes) -> str | None:
    """Return the event type of a post of one message; None if the post is not plain."""
    path = _PATH.match(environ["PATH_INFO"])
    is_plain = not environ["QUERY_STRING"] and len(body) <= LONGEST_BODY
    if path is None or not is_plain or any(name in environ for name in _NOT_PLAIN):
        return None
    return path["event_type"]


def _messages(environ: Mapping[str, Any], body: bytes) -> int:
    """Return the maximum number of messages in a batch; 0 if it is not plain.

    An exact count needs parsing, for which all other requests would wait.
    """
    if environ["QUERY_STRING"] not in ("", PARTIAL) or len(body) > LONGEST_BATCH:
        return 0
    count = body.count(b'"event"')
    return count if count <= MAX_ITEMS else 0


def _is_host(host: str) -> bool:
    # Strangers choose it: only names of possible length are kept.
    return len(host) <= LONGEST_HOST and _is_allowed_host(host)


@lru_cache(maxsize=1_000)
def _is_allowed_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _is_secure(environ: Mapping[str, Any]) -> bool:
    proxy = settings.SECURE_PROXY_SSL_HEADER
    by_proxy = proxy is not None and environ.get(proxy[0]) == proxy[1]
    return by_proxy or environ["wsgi.url_scheme"] == "https"


def _published(post: Post, body: bytes) -> AcceptedResponse:
    view = BatchView if post.event_type is None else PublishView
    name = f"{view.__module__}.{view.__qualname__}"
    return AcceptedResponse(name, _headers(view, _is_secure(post.environ)), body)


@lru_cache(maxsize=4)
def _headers(view: type[ApiView], is_secure: bool) -> Headers:
    """Return the headers that Django would send, except the length, which the web server adds."""
    request = HttpRequest()
    request.META["wsgi.url_scheme"] = "https" if is_secure else "http"
    request.META |= {"SERVER_NAME": "", "SERVER_PORT": ""}
    response = HttpResponse(
        content_type="application/json", headers={"Allow": ", ".join(view().allowed_methods)}
    )
    SecurityMiddleware(lambda _: response)(request)
    return list(response.items())
