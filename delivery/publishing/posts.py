"""The queue of posts that wait to be stored: bounded, and fair to every key."""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delivery.publish import Accepted
from subscriptions.api.problems import Problem

# Stored by one statement.
MOST_TOGETHER = 100
MOST_BYTES_TOGETHER = 1024 * 1024
MOST_WAITING = 2_000


@dataclass(slots=True, eq=False)
class Post:
    """One request to publish one message. `done` is None when the view is to answer it."""

    key: str
    event_type: str
    environ: Mapping[str, Any]
    body: bytes = field(repr=False)
    done: "asyncio.Future[Accepted | Problem | None]"
    # Whether it counts in the publisher's rate.
    is_counted: bool = False


class Posts:
    """Put by the event loop, taken by the committers."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Post]] = OrderedDict()
        self._count = 0
        self._is_closed = False
        self._arrived = threading.Condition()

    def put(self, post: Post) -> bool:
        """False if too many wait already."""
        with self._arrived:
            if self._count >= MOST_WAITING:
                return False
            self._waiting.setdefault(post.key, deque()).append(post)
            self._count += 1
            self._arrived.notify()
        return True

    def take(self) -> list[Post]:
        """Wait for posts, and take the oldest of each key in turn; none are left when the queue was closed."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._waiting or self._is_closed)
            taken: list[Post] = []
            size = 0
            while self._waiting and len(taken) < MOST_TOGETHER and size < MOST_BYTES_TOGETHER:
                key, posts = self._waiting.popitem(last=False)
                taken.append(posts.popleft())
                size += len(taken[-1].body)
                if posts:
                    self._waiting[key] = posts
            self._count -= len(taken)
        return taken

    def close(self) -> None:
        """Let the committers end when all that waits is stored."""
        with self._arrived:
            self._is_closed = True
            self._arrived.notify_all()
