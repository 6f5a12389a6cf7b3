"""The web server's way to the committers: which requests take it, and their answers."""

import asyncio
import re
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.security import SecurityMiddleware

from delivery.api.publish import PublishView, answer
from delivery.publishing.committer import Committer
from delivery.publishing.posts import Post, Posts
from subscriptions.api.problems import Problem
from subscriptions.api.urls import NAME

COMMITTERS = 2
# What is longer takes longer to match, and its neighbours would wait for it.
LONGEST_BODY = 64 * 1024
VIEW = f"{PublishView.__module__}.{PublishView.__qualname__}"

Headers = list[tuple[str, str]]

_PATH = re.compile(rf"/api/v1/events/(?P<event_type>{NAME})/messages\Z")
# What takes more than one statement.
_NOT_PLAIN = ("HTTP_CALLBACKURL", "HTTP_DESTINATION")


class Intake:
    """Of one web process and its event loop."""

    def __init__(self) -> None:
        self._posts = Posts()
        self._threads: list[threading.Thread] = []

    async def publish(self, environ: Mapping[str, Any], body: bytes) -> tuple[Headers, bytes] | None:
        """Publish a plain post, and return the headers and the body of the 202; None leaves the request to its view.

        Raises Problem 503 when too many wait, or when the database went away meanwhile.
        """
        post = _post(environ, body)
        if post is None:
            return None
        if not self._threads:
            self._start()
        if not self._posts.put(post):
            detail = "Too many messages are being published just now. Repeat the request in a moment."
            raise Problem(503, "too-many-posts", detail, headers={"Retry-After": "1"})
        done = await post.done
        if isinstance(done, Problem):
            raise done
        return None if done is None else (_headers(_is_secure(environ)), orjson.dumps(answer(done)))

    def close(self) -> None:
        """Store what waits, and end."""
        self._posts.close()
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        for number in range(COMMITTERS):
            # A daemon: a process that fails must end.
            thread = threading.Thread(
                target=Committer(self._posts).run, name=f"committer {number + 1}", daemon=True
            )
            self._threads.append(thread)
            thread.start()


def _post(environ: Mapping[str, Any], body: bytes) -> Post | None:
    if environ["REQUEST_METHOD"] != "POST" or environ["QUERY_STRING"] or len(body) > LONGEST_BODY:
        return None
    path = _PATH.match(environ["PATH_INFO"])
    scheme, _, key = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if path is None or scheme.lower() != "bearer" or not key.strip():
        return None
    if any(name in environ for name in _NOT_PLAIN) or not _is_host(environ.get("HTTP_HOST", "")):
        return None
    done = asyncio.get_running_loop().create_future()
    return Post(key.strip(), path["event_type"], environ, body, done)


@lru_cache(maxsize=1_000)
def _is_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _is_secure(environ: Mapping[str, Any]) -> bool:
    proxy = settings.SECURE_PROXY_SSL_HEADER
    by_proxy = proxy is not None and environ.get(proxy[0]) == proxy[1]
    return by_proxy or environ["wsgi.url_scheme"] == "https"


@lru_cache(maxsize=2)
def _headers(is_secure: bool) -> Headers:
    """Return what Django would send, but for the length, which the web server adds."""
    request = HttpRequest()
    request.META["wsgi.url_scheme"] = "https" if is_secure else "http"
    request.META |= {"SERVER_NAME": "", "SERVER_PORT": ""}
    response = HttpResponse(
        content_type="application/json", headers={"Allow": ", ".join(PublishView().allowed_methods)}
    )
    SecurityMiddleware(lambda _: response)(request)
    return list(response.items())
