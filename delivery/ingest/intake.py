"""The web server's way to the committers: the posts that take it, and their answers."""

import asyncio
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from delivery.incoming.batch_items import MAX_ITEMS
from delivery.incoming.problems import Problem
from delivery.ingest.committer import Committer
from delivery.ingest.plain import PARTIAL
from delivery.ingest.posts import MOST_BYTES_TOGETHER, Post, Posts
from subscriptions.values.names import is_name

COMMITTERS = 2
# A longer body takes longer to match, and its neighbours would wait for it.
LONGEST_BODY = 64 * 1024
LONGEST_BATCH = MOST_BYTES_TOGETHER
# A name of the longest kind, with a port.
LONGEST_HOST = 253 + len(":65535")

BATCH = "/api/v1/messages:batch"

_PATH = re.compile(r"/api/v1/events/(?P<event_type>[^/]*)/messages\Z")
# Messages with these headers take more than one statement.
_NOT_PLAIN = ("HTTP_CALLBACKURL", "HTTP_DESTINATION")


@dataclass(frozen=True, slots=True)
class StoredPost:
    """The answer to a stored post, of one message or of a batch: the body of the 202."""

    is_batch: bool
    body: bytes


class Intake:
    """The intake of one web process and its event loop."""

    def __init__(self) -> None:
        self._posts = Posts()
        self._threads: list[threading.Thread] = []

    async def publish(self, environ: dict[str, Any], body: bytes) -> StoredPost | None:
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
        return None if done is None else StoredPost(post.event_type is None, done)

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
    return path["event_type"] if is_name(path["event_type"]) else None


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
