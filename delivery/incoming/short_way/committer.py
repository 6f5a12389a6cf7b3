"""A committer: a thread stores waiting posts, a group by a statement.

`plain.py` chooses the subscriptions of each message; `store.py` executes the statement.
"""

import logging
import select
from collections.abc import Sequence

import psycopg
from django.db import Error, connection

from delivery.incoming.problems import Problem, database_away, unexpected_error
from delivery.incoming.short_way.cache import ConfigurationCache
from delivery.incoming.short_way.plain import PlainPost, PlainReader
from delivery.incoming.short_way.posts import Post, Posts
from delivery.incoming.short_way.store import store_together
from delivery.publishing.plain import WhyNotPlain

log = logging.getLogger(__name__)

# After this many tries, each met by a change of configuration, the views store the posts.
ATTEMPTS = 3
# An administrator's transaction may hold an event type or a subscription for long.
LOCK_MILLISECONDS = 100
# Errors after which the transaction is known to be rolled back: data, constraints, deadlocks and
# serialisation, forbidden statements, resources, and a cancelled statement.
_ROLLED_BACK = ("22", "23", "40", "42", "53", "54", "55", "57014", "25")

READ_ONLY = "25006"

Answers = Sequence[tuple[Post, bytes | Problem | WhyNotPlain]]


class Committer:
    """Takes groups of posts until the queue is closed."""

    def __init__(self, posts: Posts) -> None:
        self._posts = posts
        self._cache = ConfigurationCache()
        self._reader = PlainReader(self._cache)
        self._prepared: object = None

    def run(self) -> None:
        while posts := self._posts.take():
            try:
                answers = self._answers(posts)
            except Exception:  # The thread must survive any exception.
                log.exception("posts could not be stored")
                answers = [(post, unexpected_error()) for post in posts]
            _resolve(answers)
        connection.close()

    def _answers(self, posts: Sequence[Post]) -> Answers:
        for _ in range(ATTEMPTS):
            try:
                plain, others = self._divided(posts)
            except Error:
                # Nothing was stored; the view reports the error.
                connection.close()
                return [(post, WhyNotPlain.NOT_STORED) for post in posts]
            answers = self._store(plain)
            if answers is not None:
                return [*answers, *others]
            self._cache.forget()
        return [(post, WhyNotPlain.CONFIGURATION_CHANGED) for post in posts]

    def _divided(
        self, posts: Sequence[Post]
    ) -> tuple[list[PlainPost], list[tuple[Post, WhyNotPlain]]]:
        """Return the plain posts, and the others with the reason."""
        self._connect()
        # Drops too old entries; the statement compares the rest.
        self._cache.known_configuration()
        plain: list[PlainPost] = []
        others: list[tuple[Post, WhyNotPlain]] = []
        claimed: set[tuple[int | None, str]] = set()
        for post in posts:
            found = self._reader.read_post(post)
            if isinstance(found, WhyNotPlain):
                others.append((post, found))
            elif _is_first(found, claimed):
                plain.append(found)
            else:
                others.append((post, WhyNotPlain.KEY_IS_USED))
        return plain, others

    def _connect(self) -> None:
        if connection.connection is not None and _is_closed(connection.connection):
            connection.close()
        connection.ensure_connection()
        if connection.connection is not self._prepared:
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
            self._prepared = connection.connection

    def _store(self, plain: Sequence[PlainPost]) -> Answers | None:
        """Store them together; None if the configuration has changed."""
        try:
            return store_together(
                plain,
                as_of=self._cache.known_configuration(),
                is_alone=len(plain) == 1 and self._posts.is_quiet,
            )
        except Error as error:
            return _failed(plain, error)


def _failed(plain: Sequence[PlainPost], error: Error) -> Answers:
    """Return the answers to posts not stored, or perhaps not stored, by the database."""
    state = getattr(error.__cause__, "sqlstate", None) or ""
    if state == READ_ONLY:
        # This connection may stay read-only when others can write again.
        connection.close()
    if state.startswith(_ROLLED_BACK):
        log.info("posts are stored one by one", extra={"error": str(error), "posts": len(plain)})
        return [(plain_post.post, WhyNotPlain.NOT_STORED) for plain_post in plain]
    connection.close()
    return [(plain_post.post, database_away()) for plain_post in plain]


def _is_closed(idle: psycopg.Connection) -> bool:
    """True if the server has ended the connection: nothing else makes an idle connection readable.

    Without this check the next group would be answered 503, because nobody could know whether the
    statement arrived.
    """
    if idle.closed:
        return True
    readable, _, _ = select.select([idle.fileno()], [], [], 0)
    return bool(readable)


def _is_first(plain_post: PlainPost, claimed: set[tuple[int | None, str]]) -> bool:
    """True if no other message of the group has a key of this message.

    Otherwise this post waits in the view for the other's answer.
    """
    places = [
        (owed.publisher_id, owed.claim.key) for owed in plain_post.owed if owed.claim is not None
    ]
    is_first = len(set(places)) == len(places) and claimed.isdisjoint(places)
    if is_first:
        claimed.update(places)
    return is_first


def _resolve(answers: Answers) -> None:
    """Resolve the answers of a group on the event loop, which is woken once."""

    def resolve() -> None:
        for post, answer in answers:
            if not post.done.done():
                post.done.set_result(answer)

    answers[0][0].done.get_loop().call_soon_threadsafe(resolve)
