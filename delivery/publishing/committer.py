"""A committer: a thread that stores the posts that wait, a group by one statement."""

import logging
import select
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from django.conf import settings
from django.db import Error, connection

from delivery.api import incoming
from delivery.api.publish import with_content_type
from delivery.api.rate_limit import bucket_of
from delivery.drafts import Draft, PublishRefusedError, check_body
from delivery.publish import Accepted, Owed, claim_of, store
from delivery.publishing.directory import Directory
from delivery.publishing.posts import Post, Posts
from subscriptions.api.problems import Problem, database_away, unexpected
from subscriptions.filters import document
from subscriptions.matching import FILTER_STRING, qualifying
from subscriptions.models import Kind

log = logging.getLogger(__name__)

# Configuration that changes faster than it is read: then the views store the posts.
ATTEMPTS = 3
# An administrator's transaction may hold an event type or a subscription for long.
LOCK_MILLISECONDS = 100
# Errors after which the transaction is known to be rolled back: data, constraints, deadlocks and serialisation, what
# a statement may not do, resources, and a statement that was cancelled.
_ROLLED_BACK = ("22", "23", "40", "42", "53", "54", "55", "57014", "25")

READ_ONLY = "25006"

Answers = list[tuple[Post, Accepted | Problem | None]]


@dataclass(frozen=True, slots=True)
class Ready:
    """A post whose message may be stored."""

    post: Post
    owed: Owed


class Committer:
    """Takes groups of posts until the queue is closed."""

    def __init__(self, posts: Posts) -> None:
        self._posts = posts
        self._directory = Directory()
        self._prepared: object = None

    def run(self) -> None:
        while posts := self._posts.take():
            try:
                answers = self._answers(posts)
            except Exception:  # The thread must live, whatever was raised.
                log.exception("posts could not be stored")
                answers = [(post, unexpected()) for post in posts]
            _resolve(answers)
        connection.close()

    def _answers(self, posts: Sequence[Post]) -> Answers:
        for _ in range(ATTEMPTS):
            try:
                ready = self._ready(posts)
            except Error:
                # Nothing was stored; the view says what is wrong.
                connection.close()
                break
            if not ready:
                break
            answers = self._stored(ready)
            if answers is not None:
                taken = {id(post) for post, _ in answers}
                return answers + [(post, None) for post in posts if id(post) not in taken]
            self._directory.forget()
        return [(post, None) for post in posts]

    def _ready(self, posts: Sequence[Post]) -> list[Ready]:
        self._connect()
        self._directory.era()
        ready: list[Ready] = []
        claimed: set[tuple[int | None, str]] = set()
        for post in posts:
            owed = self._owed(post)
            if owed is not None and _is_first(owed, claimed):
                ready.append(Ready(post, owed))
        return ready

    def _connect(self) -> None:
        if connection.connection is not None and _is_closed(connection.connection):
            connection.close()
        connection.ensure_connection()
        if connection.connection is not self._prepared:
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
            self._prepared = connection.connection

    def _owed(self, post: Post) -> Owed | None:
        """Return the message with whom it is for; None if it is not plain, or is to be refused."""
        try:
            return self._matched(post)
        except (Problem, PublishRefusedError):
            return None
        except Error:
            raise
        except (
            Exception
        ):  # Its neighbours are stored, whatever was raised; the view will say the same of this one.
            log.exception("a post could not be matched")
            return None

    def _matched(self, post: Post) -> Owed | None:
        grant = self._directory.grant(post.key)
        event_type = self._directory.event_type(post.event_type)
        if grant is None or event_type is None or not grant.allows(event_type):
            return None
        headers, content_type = with_content_type(incoming.sent_headers(post.environ), event_type)
        draft = Draft(
            event_type=event_type,
            headers=headers,
            body=post.body,
            content_type=content_type,
            idempotency_key=incoming.idempotency_key(headers),
        )
        check_body(draft)
        found = self._directory.candidates(event_type, headers.get(FILTER_STRING, ""))
        is_topic = event_type.kind != Kind.QUEUE
        matches = qualifying(found, document(headers, post.body), by_subscriber=is_topic)
        if any(match.deduplicates for match in matches) or not _is_in_time(post, grant.publisher.pk):
            return None
        claim = claim_of(draft) if draft.idempotency_key else None
        return Owed(grant.publisher.pk, draft, matches, claim)

    def _stored(self, ready: Sequence[Ready]) -> Answers | None:
        """Store them together; None if the configuration has changed."""
        try:
            found = store([one.owed for one in ready], as_of=self._directory.era())
        except Error as error:
            state = getattr(error.__cause__, "sqlstate", None) or ""
            if state == READ_ONLY:
                # It may stay so on this connection when others take changes again.
                connection.close()
            if state.startswith(_ROLLED_BACK):
                log.info("posts are stored one by one", extra={"error": str(error), "posts": len(ready)})
                return [(one.post, None) for one in ready]
            connection.close()
            return [(one.post, database_away()) for one in ready]
        if found is None:
            return None
        accepted, work = found
        work.tell()
        return [(one.post, answer) for one, answer in zip(ready, accepted, strict=True)]


def _is_closed(idle: psycopg.Connection) -> bool:
    """Whether the server has ended the connection: nothing else makes an idle one readable.

    Without it the next group would be answered 503, for nobody could know whether its statement arrived.
    """
    if idle.closed:
        return True
    readable, _, _ = select.select([idle.fileno()], [], [], 0)
    return bool(readable)


def _is_first(owed: Owed, claimed: set[tuple[int | None, str]]) -> bool:
    """Whether no other of the group has the key of this one, which then waits for the other's answer in the view."""
    if owed.claim is None:
        return True
    place = owed.publisher_id, owed.claim.key
    is_first = place not in claimed
    claimed.add(place)
    return is_first


def _is_in_time(post: Post, publisher_id: int) -> bool:
    """Whether the publisher may publish one more now; what it may not is answered by the view."""
    bucket = bucket_of(settings.ENVIRONMENT.publish_rate_limit)
    if bucket is not None and not post.is_counted:
        post.is_counted = not bucket.wait_seconds(publisher_id, messages=1)
        return post.is_counted
    return True


def _resolve(answers: Answers) -> None:
    """All of one group belong to one event loop, which is woken once."""

    def resolve() -> None:
        for post, answer in answers:
            if not post.done.done():
                post.done.set_result(answer)

    answers[0][0].done.get_loop().call_soon_threadsafe(resolve)
