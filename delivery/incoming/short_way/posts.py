"""The queue of posts to be stored: bounded, and fair to every key."""

import asyncio
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from delivery.incoming.problems import Problem
from delivery.publishing.plain import LONGEST_BATCH, WhyNotPlain

# The size of a group for a statement; a batch may exceed it.
MOST_TOGETHER = 100
MOST_BYTES_TOGETHER = LONGEST_BATCH
MOST_WAITING = 2_000
# The limit for messages in batches: some seconds' work.
MOST_MESSAGES_WAITING = 10_000


@dataclass(slots=True, eq=False)
class Post:
    """A request to publish a message, or a batch.

    `done` results in the body of the 202, a Problem, or the reason why the view must answer.
    """

    key: str
    # Only for a single message; the items of a batch have their own.
    event_type: str | None
    environ: dict[str, Any]
    body: bytes = field(repr=False)
    done: "asyncio.Future[bytes | Problem | WhyNotPlain]"
    # The maximum number of messages.
    messages: int = 1


class Posts:
    """The queue: the event loop puts posts, the committers take them."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Post]] = OrderedDict()
        self._count = 0
        self._messages = 0
        self._is_closed = False
        self._arrived = threading.Condition()
        # The committers at work, by their threads.
        self._at_work: set[int] = set()

    def put(self, post: Post) -> bool:
        """Queue a post; return False if too many wait already."""
        with self._arrived:
            if self._count >= MOST_WAITING or self._messages >= MOST_MESSAGES_WAITING:
                return False
            self._waiting.setdefault(post.key, deque()).append(post)
            self._count += 1
            self._messages += post.messages
            self._arrived.notify()
        return True

    def take(self) -> list[Post]:
        """Wait for posts, and take the oldest of each key in turn.

        Return an empty list once the queue is closed and empty.
        """
        thread = threading.get_ident()
        with self._arrived:
            self._at_work.discard(thread)
            self._arrived.wait_for(lambda: self._waiting or self._is_closed)
            batch: list[Post] = []
            size = messages = 0
            while self._waiting and messages < MOST_TOGETHER and size < MOST_BYTES_TOGETHER:
                key, posts = self._waiting.popitem(last=False)
                batch.append(posts.popleft())
                size += len(batch[-1].body)
                messages += batch[-1].messages
                if posts:
                    self._waiting[key] = posts
            self._count -= len(batch)
            self._messages -= messages
            self._at_work.add(thread)
        return batch

    @property
    def is_quiet(self) -> bool:
        """True if no posts wait, and only one committer is at work."""
        return not self._waiting and len(self._at_work) == 1

    def close(self) -> None:
        """End the committers when all waiting posts are stored."""
        with self._arrived:
            self._is_closed = True
            self._arrived.notify_all()
