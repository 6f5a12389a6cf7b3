"""Drafts: what a publisher wants published, and whether it may be."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import orjson

from delivery.callback_urls import CALLBACK_URL, CallbackRefusedError, Wanted, wanted
from delivery.schema import first_violation
from subscriptions.destinations import EVERYBODY, Destination, UnknownDestinationError, destination
from subscriptions.models import EventType, Kind

DESTINATION = "destination"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a publisher wants published; header names are lower-case and hyphenated.

    `callback` and `destination` follow from the headers, and are left to `checked`.
    """

    event_type: EventType
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    content_type: str = ""
    idempotency_key: str | None = None
    callback: Wanted | None = None
    destination: Destination = EVERYBODY


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


def checked(draft: Draft, *, index: int = 0) -> Draft:
    """Return the draft with what follows from its headers; raises PublishRefusedError for one that is not acceptable."""
    check_body(draft, index=index)
    return _with_destination(_with_callback(draft, index=index), index=index)


def check_body(draft: Draft, *, index: int = 0) -> None:
    """Raise PublishRefusedError unless the body is what its content type and the event type's schema say."""
    if not is_json(draft.content_type or draft.event_type.content_type):
        return
    try:
        value = orjson.loads(draft.body)
    except orjson.JSONDecodeError as error:
        detail = f"The body is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
        raise PublishRefusedError(detail, index=index, status=400) from error
    try:
        violation = first_violation(draft.event_type, value)
    except RecursionError:
        detail = "The body is nested too deep to be checked against the event type's schema."
        raise PublishRefusedError(detail, index=index, status=400) from None
    if violation is not None:
        detail = f"The body does not satisfy the event type's schema at {violation.path}: {violation.message}"
        raise PublishRefusedError(detail, index=index, status=422, path=violation.path)


def _with_callback(draft: Draft, *, index: int) -> Draft:
    """Return a draft that knows where answers to it are wanted: of a TOPIC, `CallbackURL` is a header as any other."""
    if draft.event_type.kind != Kind.QUEUE or CALLBACK_URL not in draft.headers:
        return draft
    try:
        return replace(draft, callback=wanted(draft.headers))
    except CallbackRefusedError as refused:
        raise PublishRefusedError(refused.detail, index=index, status=400, code="callback-refused") from None


def _with_destination(draft: Draft, *, index: int) -> Draft:
    name = draft.headers.get(DESTINATION)
    if name is None:
        return draft
    try:
        return replace(draft, destination=destination(name, event_type=draft.event_type))
    except UnknownDestinationError as unknown:
        code = "no-such-destination"
        raise PublishRefusedError(unknown.detail, index=index, status=404, code=code) from None


def is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")
