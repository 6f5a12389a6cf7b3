"""The draft of a publisher's message, from a request or a batch; and the answer to it."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from delivery.incoming.batch_items import Item
from delivery.incoming.bodies import read_body, too_large
from delivery.incoming.content_types import with_content_type
from delivery.incoming.headers import idempotency_key, sent_headers, storable_headers
from delivery.incoming.problems import Problem
from delivery.incoming.rate_limit import limit_rate
from delivery.models.message import public_id
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.stored_messages import Accepted
from subscriptions.matching.lookups import event_type_by_name
from subscriptions.models import EventType, Publisher
from subscriptions.values.names import is_reserved

_CODES = {
    400: "not-json",
    404: "deleted-meanwhile",
    409: "idempotency-key-reused",
    422: "schema-violation",
}


def draft_of_request(publisher: Publisher, event_type: str, request: HttpRequest) -> Draft:
    """Return the message of a request; raise Problem, also when the publisher is too fast."""
    published = allowed_event_type(publisher, event_type)
    headers, content_type = with_content_type(sent_headers(request.META), published)
    limit_rate(publisher, request.META)
    return Draft(
        event_type=published,
        headers=headers,
        body=read_body(request, max_bytes=settings.ENVIRONMENT.max_message_bytes),
        content_type=content_type,
        idempotency_key=idempotency_key(headers),
    )


def draft_of_item(item: Item, event_type_of: Callable[[str], EventType]) -> Draft:
    """Return the message of an item; raise Problem if it is invalid."""
    if len(item.body) > settings.ENVIRONMENT.max_message_bytes:
        raise too_large(settings.ENVIRONMENT.max_message_bytes)
    event_type = event_type_of(item.event)
    stored = storable_headers(_headers_of(item).items())
    headers, content_type = with_content_type(stored, event_type)
    return Draft(
        event_type=event_type,
        headers=headers,
        body=item.body,
        content_type=content_type,
        idempotency_key=idempotency_key(headers),
    )


def allowed_event_type(publisher: Publisher, name: str) -> EventType:
    event_type = event_type_by_name(name)
    if event_type is None:
        raise Problem(
            404,
            "no-such-event-type",
            f"There is no event type {name}; an administrator can create it.",
        )
    if is_reserved(name):
        raise Problem(
            403, "reserved", f"{name} is published only by Inturn itself; subscribe to it."
        )
    if not publisher.may_publish(event_type):
        raise Problem(
            403,
            "not-allowed",
            f"{publisher.name} may not publish {name}; an administrator can allow it.",
        )
    return event_type


def describe_accepted(accepted: Accepted) -> dict[str, Any]:
    return {"id": public_id(accepted.message_id), "deliveries": accepted.deliveries}


def problem_of_refusal(refused: PublishRefusedError, **members: Any) -> Problem:
    if refused.path is not None:
        members["path"] = refused.path
    code = refused.code or _CODES.get(refused.status, "refused")
    return Problem(refused.status, code, refused.detail, **members)


def _headers_of(item: Item) -> dict[str, str]:
    """Return an item's headers as they would be in a separate request."""
    headers = dict(item.headers)
    if item.is_json:
        headers.setdefault("content-type", "application/json")
    if item.idempotency_key is not None:
        headers["idempotency-key"] = item.idempotency_key
    return headers
