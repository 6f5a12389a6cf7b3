"""Plain posts: their messages and the subscriptions of each, by a committer's cache.

Other posts and refusals are left to the view, for a reason of `delivery/publishing/plain.py`. Only
the bad items of a partial batch are answered here, each with the view's problem.
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
from delivery.incoming.short_way.cache import ConfigurationCache
from delivery.incoming.short_way.posts import Post
from delivery.publishing.drafts import Draft, PublishRefusedError, check_body
from delivery.publishing.owed_deliveries import Owed
from delivery.publishing.plain import WhyNotPlain, why_not_plain
from delivery.publishing.publish import claim_of
from delivery.publishing.stored_messages import Accepted
from subscriptions.filters import document
from subscriptions.matching.candidates import Candidate
from subscriptions.matching.match import FILTER_STRING, qualifying_candidates
from subscriptions.models import EventType, Kind
from subscriptions.values.names import is_name

log = logging.getLogger(__name__)

PARTIAL = "partial=true"


class NotPlainError(Exception):
    """The view must answer the post."""

    def __init__(self, reason: WhyNotPlain) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PlainPost:
    """A post whose messages may be stored.

    `refused` are the refused items of a partial batch, by place.
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
    """Reads posts for a committer."""

    def __init__(self, cache: ConfigurationCache) -> None:
        self._cache = cache

    def read_post(self, post: Post) -> PlainPost | WhyNotPlain:
        """Return the messages to store, or why the view must answer the post."""
        try:
            return self._plain_post(post)
        except NotPlainError as error:
            return error.reason
        except (Problem, PublishRefusedError):
            return WhyNotPlain.REFUSED
        except Error:
            raise
        except Exception:
            # The neighbours are stored whatever was raised; the view will report the same error for
            # this post.
            log.exception("a post could not be matched")
            return WhyNotPlain.FAILED

    def _plain_post(self, post: Post) -> PlainPost:
        grant = self._cache.grant(post.key)
        if grant is None:
            raise NotPlainError(WhyNotPlain.NO_GRANT)
        read = self._batch(post, grant) if post.event_type is None else self._single(post, grant)
        if not read.owed:
            # Nothing is stored to show whether the configuration is still the same.
            raise NotPlainError(WhyNotPlain.REFUSED)
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
        found = self._cache.event_type(name) if is_name(name) else WhyNotPlain.NO_EVENT_TYPE
        if isinstance(found, WhyNotPlain):
            raise NotPlainError(found)
        if not grant.allows(found):
            raise NotPlainError(WhyNotPlain.NO_EVENT_TYPE)
        return found

    def _owed(self, grant: Grant, draft: Draft) -> Owed:
        """Return the message with the recipients; raise PublishRefusedError."""
        if reason := why_not_plain(headers=draft.headers):
            raise NotPlainError(reason)
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
        if not subscribed.is_plain and (reason := why_not_plain(matches=matches)):
            raise NotPlainError(reason)
        return matches


def _items(post: Post) -> list[Item | Problem]:
    try:
        items = read_items(post.body, content_type=post.environ.get("CONTENT_TYPE", ""))
    except ValueError:
        raise NotPlainError(WhyNotPlain.REFUSED) from None
    if len(items) > post.messages:
        # A name written with escapes was not counted.
        raise NotPlainError(WhyNotPlain.MANY_ITEMS)
    return items


def _count(post: Post, grant: Grant, *, messages: int) -> None:
    """Count the messages in the publisher's rate, once; the view answers requests beyond it."""
    bucket = bucket_of(settings.ENVIRONMENT.publish_rate_limit)
    if bucket is None or COUNTED in post.environ:
        return
    if bucket.wait_seconds(grant.publisher.pk, messages=messages):
        raise NotPlainError(WhyNotPlain.TOO_FAST)
    post.environ[COUNTED] = True
