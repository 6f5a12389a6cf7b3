"""Plain posts: their messages and the subscriptions of each, by a committer's cache.

Posts that are not plain or must be refused are left to the view. Only the bad items of a partial
batch are answered here, each with the problem that the view would return.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from django.conf import settings
from django.db import Error

from delivery.incoming.batch_items import Item, read_items
from delivery.incoming.content_types import with_content_type
from delivery.incoming.drafting import describe_accepted, draft_of_item, problem_of_refusal
from delivery.incoming.headers import idempotency_key, sent_headers
from delivery.incoming.keys import Grant
from delivery.incoming.problems import Problem
from delivery.incoming.rate_limit import COUNTED, bucket_of
from delivery.ingest.cache import ConfigurationCache
from delivery.ingest.posts import Post
from delivery.publishing.callback_urls import CALLBACK_URL
from delivery.publishing.drafts import DESTINATION, Draft, PublishRefusedError, check_body
from delivery.publishing.owed_deliveries import Owed
from delivery.publishing.publish import claim_of
from delivery.publishing.stored_messages import Accepted
from subscriptions.filters import document
from subscriptions.matching.errors_to import ERRORS_TO
from subscriptions.matching.match import FILTER_STRING, Candidate, qualifying_candidates
from subscriptions.matching.reply_to import REPLY_TO
from subscriptions.models import EventType, Kind
from subscriptions.values.names import is_name

log = logging.getLogger(__name__)

# Messages with these headers take more than one statement.
_NOT_PLAIN = frozenset({DESTINATION, CALLBACK_URL, ERRORS_TO, REPLY_TO})

PARTIAL = "partial=true"


class NotPlainError(Exception):
    """The view must answer the post."""


@dataclass(frozen=True, slots=True)
class PlainPost:
    """A post whose messages may be stored.

    `refused` are the items of a partial batch that are not, by their place.
    """

    post: Post
    owed: Sequence[Owed]
    refused: Mapping[int, Problem] = field(default_factory=dict)

    @property
    def is_batch_with_keys(self) -> bool:
        return self.post.event_type is None and any(owed.claim for owed in self.owed)

    def answer(self, accepted: Sequence[Accepted]) -> bytes:
        """Return the body of the 202."""
        if self.post.event_type is not None:
            return orjson.dumps(describe_accepted(accepted[0]))
        left = iter(accepted)
        results = [
            {"error": self.refused[place].document}
            if place in self.refused
            else describe_accepted(next(left))
            for place in range(len(self.owed) + len(self.refused))
        ]
        return orjson.dumps({"results": results})


class PlainReader:
    """Reads posts for one committer."""

    def __init__(self, cache: ConfigurationCache) -> None:
        self._cache = cache

    def read_post(self, post: Post) -> PlainPost | None:
        """Return the messages to store; None if the post is not plain, or must be refused."""
        try:
            return self._plain_post(post)
        except (NotPlainError, Problem, PublishRefusedError):
            return None
        except Error:
            raise
        except Exception:
            # Its neighbours are stored whatever was raised; the view will report the same error for
            # this one.
            log.exception("a post could not be matched")
            return None

    def _plain_post(self, post: Post) -> PlainPost:
        grant = self._cache.grant(post.key)
        if grant is None:
            raise NotPlainError
        read = self._batch(post, grant) if post.event_type is None else self._single(post, grant)
        if not read.owed:
            # Nothing is stored that could show whether the configuration is still the same.
            raise NotPlainError
        _count(post, grant, messages=len(read.owed) + len(read.refused))
        return read

    def _single(self, post: Post, grant: Grant) -> PlainPost:
        event_type = self._event_type(grant, post.event_type or "")
        headers, content_type = with_content_type(sent_headers(post.environ), event_type)
        draft = Draft(
            event_type=event_type,
            headers=headers,
            body=post.body,
            content_type=content_type,
            idempotency_key=idempotency_key(headers),
        )
        return PlainPost(post, [self._owed(grant, draft)])

    def _batch(self, post: Post, grant: Grant) -> PlainPost:
        items = _items(post)
        if post.environ["QUERY_STRING"] != PARTIAL:
            return PlainPost(post, [self._owed_by_item(grant, item) for item in items])
        owed: list[Owed] = []
        refused: dict[int, Problem] = {}
        for place, item in enumerate(items):
            try:
                owed.append(self._owed_by_item(grant, item))
            except Problem as problem:
                refused[place] = problem
        return PlainPost(post, owed, refused)

    def _owed_by_item(self, grant: Grant, item: Item | Problem) -> Owed:
        if isinstance(item, Problem):
            raise item
        draft = draft_of_item(item, lambda name: self._event_type(grant, name))
        try:
            return self._owed(grant, draft)
        except PublishRefusedError as refused:
            raise problem_of_refusal(refused) from None

    def _event_type(self, grant: Grant, name: str) -> EventType:
        event_type = self._cache.event_type(name) if is_name(name) else None
        if event_type is None or not grant.allows(event_type):
            raise NotPlainError
        return event_type

    def _owed(self, grant: Grant, draft: Draft) -> Owed:
        """Return the message with its recipients; raise PublishRefusedError."""
        if not _NOT_PLAIN.isdisjoint(draft.headers):
            raise NotPlainError
        check_body(draft)
        matches = self._matches(draft)
        return Owed(
            grant.publisher.pk, draft, matches, claim_of(draft) if draft.idempotency_key else None
        )

    def _matches(self, draft: Draft) -> Sequence[Candidate]:
        subscribed = self._cache.subscribed(draft.event_type, draft.headers.get(FILTER_STRING, ""))
        matches = subscribed.always
        if matches is None:
            is_topic = draft.event_type.kind != Kind.QUEUE
            content = document(draft.headers, draft.body)
            possible = subscribed.candidates.possible(content)
            matches = qualifying_candidates(possible, content, by_subscriber=is_topic)
        if subscribed.may_need_more_statements and any(
            match.needs_more_statements for match in matches
        ):
            raise NotPlainError
        return matches


def _items(post: Post) -> list[Item | Problem]:
    try:
        items = read_items(post.body, content_type=post.environ.get("CONTENT_TYPE", ""))
    except ValueError:
        raise NotPlainError from None
    if len(items) > post.messages:
        # A name written with escapes was not counted.
        raise NotPlainError
    return items


def _count(post: Post, grant: Grant, *, messages: int) -> None:
    """Count the messages in the publisher's rate, once; the view answers requests beyond it."""
    bucket = bucket_of(settings.ENVIRONMENT.publish_rate_limit)
    if bucket is None or COUNTED in post.environ:
        return
    if bucket.wait_seconds(grant.publisher.pk, messages=messages):
        raise NotPlainError
    post.environ[COUNTED] = True
