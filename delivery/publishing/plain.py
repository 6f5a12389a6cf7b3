"""Plain messages: those stored by `accept.sql` alone, by a cache of their event type.

A post of plain messages takes the short way (`delivery.incoming.short_way`), and a view answers
every other. The short way asks at three moments: about a request before the post waits among
others, about an event type when it is cached, and about each message with the matches.
"""

from collections.abc import Container, Iterable
from enum import StrEnum

from delivery.publishing.callback_urls import CALLBACK_URL
from delivery.publishing.drafts import DESTINATION, Draft
from subscriptions.matching.candidates import Candidate
from subscriptions.matching.errors_to import ERRORS_TO
from subscriptions.matching.reply_to import REPLY_TO
from subscriptions.models import EventType, Kind
from subscriptions.values.names import is_reserved

# A longer body takes longer to match, and the neighbours would wait for it.
LONGEST_BODY = 64 * 1024
LONGEST_BATCH = 1024 * 1024


class WhyNotPlain(StrEnum):
    """Why a view answers a post."""

    # The request.
    NO_POST = "it is no request to publish that has a key and is sent to an allowed host"
    QUERY = "its query string has to be checked"
    LONG_BODY = "its body takes long to match"
    MANY_ITEMS = "its batch may have too many items"
    # A header with a name to look up.
    DESTINATION = "its Destination has to be found"
    CALLBACK_URL = "its CallbackURL has to be checked, and its callback stored"
    ERRORS_TO = "the recipient in its ErrorsTo has to be found"
    REPLY_TO = "the event type in its ReplyTo has to be found"
    # The event type.
    RESERVED = "its event type is Inturn's own"
    SYNC = "its publisher waits for the answer of the endpoint"
    VOLATILE = "its commit does not wait for the disk"
    SCHEMA = "its body takes long to compare with the schema"
    # A match with another statement in the same transaction.
    SHADOW = "a SHADOW subscription matches: its delivery is settled"
    DEDUP = "a subscription that looks for duplicates matches"
    JOIN = "a subscription that joins messages matches"
    # The moment.
    NO_GRANT = "its key may not publish"
    NO_EVENT_TYPE = "its key may not publish this event type, or there is none of that name"
    TOO_FAST = "its publisher is too fast"
    REFUSED = "it is refused, or it stores nothing"
    KEY_IS_USED = "its idempotency key was used, or another post has it at this moment"
    CONFIGURATION_CHANGED = "the configuration changed each time when it was matched"
    NOT_STORED = "the database refused its group, or gave no configuration"
    FAILED = "matching it failed"


HEADERS = {
    DESTINATION: WhyNotPlain.DESTINATION,
    CALLBACK_URL: WhyNotPlain.CALLBACK_URL,
    ERRORS_TO: WhyNotPlain.ERRORS_TO,
    REPLY_TO: WhyNotPlain.REPLY_TO,
}


def why_not_plain(
    *,
    query: str = "",
    body_bytes: int = 0,
    is_batch: bool = False,
    headers: Container[str] = (),
    event_type: EventType | None = None,
    matches: Iterable[Candidate] = (),
) -> WhyNotPlain | None:
    """Return the first reason among the given facts; None if they are those of a plain message.

    `headers` holds the names of the message's headers, `matches` the subscriptions.
    """
    if query:
        return WhyNotPlain.QUERY
    if body_bytes > (LONGEST_BATCH if is_batch else LONGEST_BODY):
        return WhyNotPlain.LONG_BODY
    for name, reason in HEADERS.items():
        if name in headers:
            return reason
    by_event_type = None if event_type is None else _why_not_by_event_type(event_type)
    return by_event_type or next(filter(None, map(_why_not_by_match, matches)), None)


def needs_more_statements(draft: Draft, matches: Iterable[Candidate]) -> bool:
    """True if storing a checked draft takes more than `accept.sql`, in the same transaction.

    The values of the other headers are in the draft already. The short way passes an idempotency
    key to `accept.sql`; a view waits for the first message with the key, and returns this message's
    answer.
    """
    return bool(draft.idempotency_key or draft.callback or any(map(_why_not_by_match, matches)))


def _why_not_by_event_type(event_type: EventType) -> WhyNotPlain | None:
    if is_reserved(event_type.name):
        return WhyNotPlain.RESERVED
    if event_type.kind == Kind.SYNC:
        return WhyNotPlain.SYNC
    if event_type.is_volatile:
        return WhyNotPlain.VOLATILE
    return None if event_type.json_schema is None else WhyNotPlain.SCHEMA


def _why_not_by_match(match: Candidate) -> WhyNotPlain | None:
    if match.is_shadow:
        return WhyNotPlain.SHADOW
    if match.deduplicates:
        return WhyNotPlain.DEDUP
    return WhyNotPlain.JOIN if match.joins else None
