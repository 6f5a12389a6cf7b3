"""Drafts: messages to be published for a publisher, and the checks of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import orjson

from delivery.publishing.callback_urls import (
    CALLBACK_URL,
    CallbackRefusedError,
    CallbackTarget,
    callback_target,
)
from subscriptions.matching.destinations import (
    EVERYBODY,
    Destination,
    UnknownDestinationError,
    destination,
)
from subscriptions.matching.errors_to import ERRORS_TO, check_errors_to
from subscriptions.matching.reply_to import REPLY_TO, ReplyToRefusedError, check_reply_to
from subscriptions.models import EventType, Kind, Publisher
from subscriptions.values.media_types import is_json

DESTINATION = "destination"

# Keyed by name and the event type's id.
Destinations: TypeAlias = dict[tuple[str, int], Destination]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message to be published for a publisher.

    Header names are lower-case and hyphenated. `checked_draft` sets `callback` and `destination`
    from the headers. It also sets `refusal`: why a draft with a key cannot be published, unless it
    was published before.
    """

    event_type: EventType
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    content_type: str = ""
    idempotency_key: str | None = None
    callback: CallbackTarget | None = None
    destination: Destination = EVERYBODY
    refusal: "PublishRefusedError | None" = None


class PublishRefusedError(Exception):
    """A draft that cannot be published; nothing is stored. `index` counts the drafts from 0."""

    def __init__(
        self, detail: str, *, index: int, status: int, path: str | None = None, code: str = ""
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.index = index
        self.status = status
        self.path = path
        self.code = code


def checked_draft(
    draft: Draft, *, publisher: Publisher, index: int = 0, destinations: Destinations | None = None
) -> Draft:
    """Return the draft with the values of the headers; raise PublishRefusedError.

    A destination may have existed when a message with the same key was published, which is then the
    answer. Drafts of a batch share the known `destinations`.
    """
    check_body(draft, index=index)
    draft = _with_destination(
        _with_callback(draft, index=index),
        index=index,
        destinations={} if destinations is None else destinations,
    )
    if ERRORS_TO in draft.headers and draft.refusal is None:
        draft = _with_errors_to(draft, index=index)
    if REPLY_TO in draft.headers and draft.refusal is None:
        draft = _with_reply_to(draft, publisher=publisher, index=index)
    if draft.refusal is not None and not draft.idempotency_key:
        raise draft.refusal
    return draft


# Words of orjson's messages, and the reason in ours.
_UNUSABLE = {
    "infinity": "the number at {place} is beyond 1.8e308, the largest that filters can compare. "
    "Send it as a text.",
    "surrogate": "the text at {place} has half of a character, such as \\ud83d of an emoji "
    "that was cut. Send whole characters.",
    "depth limit": "it is nested deeper than 1,024 levels at {place}.",
}


def _fault(body: bytes, error: orjson.JSONDecodeError) -> str:
    """Return a sentence about an unreadable body.

    JSON's grammar allows numbers and halves of characters impossible in filters, here and in
    PostgreSQL; whoever sends them looks in vain for an error in the syntax.
    """
    try:
        body.decode()
    except UnicodeDecodeError as undecodable:
        return f"The body is not JSON: byte {undecodable.start} is not UTF-8."
    place = f"line {error.lineno}, column {error.colno}"
    for sign, sentence in _UNUSABLE.items():
        if sign in error.msg:
            return f"The body is JSON that Inturn cannot use: {sentence.format(place=place)}"
    return f"The body is not JSON: {error.msg}, {place}."


def check_body(draft: Draft, *, index: int = 0) -> None:
    """Raise PublishRefusedError unless the body fits the content type and the schema."""
    event_type = draft.event_type
    if (
        not is_json(draft.content_type or event_type.content_type)
        and event_type.json_schema is None
    ):
        return
    try:
        value = orjson.loads(draft.body)
    except orjson.JSONDecodeError as error:
        raise PublishRefusedError(_fault(draft.body, error), index=index, status=400) from error
    if event_type.json_schema is None:
        return
    # Not at the top: it loads `jsonschema`, and no event type of Inturn's own has a schema, the
    # only ones published by chores.
    from delivery.publishing.json_schema import first_violation

    try:
        violation = first_violation(event_type, value)
    except RecursionError:
        detail = "The body is nested too deep to be checked against the event type's schema."
        raise PublishRefusedError(detail, index=index, status=400) from None
    if violation is not None:
        detail = (
            "The body does not satisfy the event type's schema at "
            f"{violation.path}: {violation.message}"
        )
        raise PublishRefusedError(detail, index=index, status=422, path=violation.path)


def _with_callback(draft: Draft, *, index: int) -> Draft:
    """Return the draft with the URL for answers.

    In a TOPIC, `CallbackURL` is an ordinary header.
    """
    if draft.event_type.kind != Kind.QUEUE or CALLBACK_URL not in draft.headers:
        return draft
    try:
        return replace(draft, callback=callback_target(draft.headers))
    except CallbackRefusedError as refused:
        raise PublishRefusedError(
            refused.detail, index=index, status=400, code="callback-refused"
        ) from None


def _with_destination(draft: Draft, *, index: int, destinations: Destinations) -> Draft:
    name = draft.headers.get(DESTINATION)
    if name is None:
        return draft
    place = name, draft.event_type.pk
    try:
        if place not in destinations:
            destinations[place] = destination(name, event_type=draft.event_type)
        return replace(draft, destination=destinations[place])
    except UnknownDestinationError as unknown:
        code = "no-such-destination"
        return replace(
            draft, refusal=PublishRefusedError(unknown.detail, index=index, status=404, code=code)
        )


def _with_errors_to(draft: Draft, *, index: int) -> Draft:
    """Return the draft, refused if `ErrorsTo` names no possible recipient of failures.

    The header itself is stored with the message.
    """
    try:
        check_errors_to(draft.headers[ERRORS_TO])
    except UnknownDestinationError as unknown:
        refusal = PublishRefusedError(
            unknown.detail, index=index, status=404, code="no-such-errors-to"
        )
        return replace(draft, refusal=refusal)
    return draft


def _with_reply_to(draft: Draft, *, publisher: Publisher, index: int) -> Draft:
    """Return the draft, refused if nobody could reply by `ReplyTo`.

    The header itself is stored with the message.
    """
    try:
        if draft.event_type.kind == Kind.SYNC:
            detail = "The endpoint's answer is the reply to a SYNC message: leave ReplyTo out."
            raise ReplyToRefusedError(detail, status=400, code="reply-to-refused")
        check_reply_to(draft.headers[REPLY_TO], publisher=publisher)
    except ReplyToRefusedError as refused:
        refusal = PublishRefusedError(
            refused.detail, index=index, status=refused.status, code=refused.code
        )
        return replace(draft, refusal=refusal)
    return draft


def takes_json(event_type: EventType) -> bool:
    """True if messages of this event type are JSON: by the content type, or if it has a schema."""
    return is_json(event_type.content_type) or event_type.json_schema is not None
