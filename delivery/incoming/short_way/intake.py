"""The web server's way to the committers: posts, and their answers."""

import asyncio
import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from delivery.incoming.batch_items import MAX_ITEMS
from delivery.incoming.problems import Problem
from delivery.incoming.short_way.committer import Committer
from delivery.incoming.short_way.plain import PARTIAL
from delivery.incoming.short_way.posts import Post, Posts
from delivery.publishing.plain import HEADERS, WhyNotPlain, why_not_plain

COMMITTERS = 2
# A name of the longest kind, with a port.
LONGEST_HOST = 253 + len(":65535")

BATCH = "/api/v1/messages:batch"

_PATH = re.compile(r"/api/v1/events/(?P<event_type>[^/]*)/messages\Z")
_HEADERS = {f"HTTP_{name.upper().replace('-', '_')}": name for name in HEADERS}


@dataclass(frozen=True, slots=True)
class StoredPost:
    """The answer to a stored post, of a message or of a batch: the body of the 202."""

    is_batch: bool
    body: bytes


class Intake:
    """The intake of a web process and the event loop."""

    def __init__(self) -> None:
        self._posts = Posts()
        self._threads: list[threading.Thread] = []

    async def publish(self, environ: dict[str, Any], body: bytes) -> StoredPost | WhyNotPlain:
        """Publish a plain post, or return why the view must answer the request.

        Raises Problem 503 if too many wait, or if the database went away meanwhile.
        """
        post = _post(environ, body)
        if isinstance(post, WhyNotPlain):
            return post
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
        return done if isinstance(done, WhyNotPlain) else StoredPost(post.event_type is None, done)

    def close(self) -> None:
        """Store the waiting posts, and end."""
        self._posts.close()
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        for number in range(COMMITTERS):
            # A daemon thread: a failing process must end.
            thread = threading.Thread(
                target=Committer(self._posts).run, name=f"committer {number + 1}", daemon=True
            )
            self._threads.append(thread)
            thread.start()


def _post(environ: dict[str, Any], body: bytes) -> Post | WhyNotPlain:
    scheme, _, key = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if environ["REQUEST_METHOD"] != "POST" or scheme.lower() != "bearer" or not key.strip():
        return WhyNotPlain.NO_POST
    path = _PATH.match(environ["PATH_INFO"])
    is_batch = environ["PATH_INFO"] == BATCH
    if (path is None and not is_batch) or not _is_host(environ.get("HTTP_HOST", "")):
        return WhyNotPlain.NO_POST
    query = environ["QUERY_STRING"]
    reason = why_not_plain(
        query="" if is_batch and query == PARTIAL else query,
        body_bytes=len(body),
        is_batch=is_batch,
        # The headers of a batch's request belong to none of the messages.
        headers=() if is_batch else [name for key, name in _HEADERS.items() if key in environ],
    )
    if reason is not None:
        return reason
    # Parsing would give an exact count, and all other requests would wait for it.
    messages = body.count(b'"event"') if is_batch else 1
    if not 0 < messages <= MAX_ITEMS:
        return WhyNotPlain.MANY_ITEMS if messages else WhyNotPlain.REFUSED
    done = asyncio.get_running_loop().create_future()
    event_type = None if path is None else path["event_type"]
    return Post(key.strip(), event_type, environ, body, done, messages)


def _is_host(host: str) -> bool:
    # Anonymous clients choose it: only names of possible length are kept.
    return len(host) <= LONGEST_HOST and _is_allowed_host(host)


@lru_cache(maxsize=1_000)
def _is_allowed_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
