"""`POST events/{event type}/messages`: publish one message, whose body is the request's."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from delivery.api import incoming, sync
from delivery.api.base.authentication import publisher_of
from delivery.api.base.bodies import read_body
from delivery.api.base.problems import Problem
from delivery.api.base.views import PUBLISH, ApiView
from delivery.api.rate_limit import limit_rate
from delivery.models.message import public_id
from delivery.publishing.drafts import Draft, PublishRefusedError, takes_json
from delivery.publishing.publish import publish
from delivery.publishing.stored_messages import Accepted
from subscriptions.matching.lookups import event_type_by_name
from subscriptions.models import EventType, Kind, Publisher
from subscriptions.values.media_types import JSON, is_json, media_type
from subscriptions.values.names import is_reserved

MAX_CONTENT_TYPE_LENGTH = 255
# The default of clients such as curl when no content type is set.
FORM_TYPE = "application/x-www-form-urlencoded"

_CODES = {
    400: "not-json",
    404: "deleted-meanwhile",
    409: "idempotency-key-reused",
    422: "schema-violation",
}


class AcceptedSerializer(serializers.Serializer[Any]):
    """A message that is on disk, with all its deliveries."""

    id = serializers.CharField(help_text="msg_…")
    deliveries = serializers.IntegerField(help_text="How many subscriptions it goes to.")


class PublishView(ApiView):
    """The complete path of a message; plain posts take a shorter one, see `delivery.ingest`."""

    required_scopes = PUBLISH

    @extend_schema(
        operation_id="publish",
        request={"application/json": OpenApiTypes.ANY, "*/*": OpenApiTypes.BINARY},
        responses={(202, "application/json"): AcceptedSerializer, **sync.RESPONSES},
        parameters=[
            sync.HEADER,
            OpenApiParameter(
                "FILTER_STRING",
                str,
                OpenApiParameter.HEADER,
                description=(
                    "Compared with subscriptions' header_filter_string. "
                    "Filter-String is accepted too."
                ),
            ),
            OpenApiParameter(
                "Idempotency-Key",
                incoming.IDEMPOTENCY_KEY,
                OpenApiParameter.HEADER,
                description=(
                    "Within 24 hours the same key gets the first answer again, "
                    "and nothing is published twice. Not with SYNC."
                ),
            ),
            OpenApiParameter(
                "CallbackURL",
                str,
                OpenApiParameter.HEADER,
                description=(
                    "QUEUE messages only: URL to which the answer of the endpoint is delivered."
                ),
            ),
            OpenApiParameter(
                "X-Forward-Authorization",
                str,
                OpenApiParameter.HEADER,
                description=(
                    "SYNC event types only: the Authorization header that the endpoint gets, "
                    "if its subscription has `forward_authorization`. It is never stored."
                ),
            ),
            OpenApiParameter(
                "Destination",
                str,
                OpenApiParameter.HEADER,
                description=(
                    "Deliver instead of publish: only the matching subscriptions "
                    "of this subscriber get it, or of subscriber/subscription only that one, or "
                    "those of all subscribers with this application. "
                    "404 when there is none of that name."
                ),
            ),
            OpenApiParameter(
                "ErrorsTo",
                str,
                OpenApiParameter.HEADER,
                description=(
                    "Recipient of failures to deliver this message, in place of all matching "
                    "subscriptions: a subscriber or subscriber/subscription with a subscription to "
                    "Inturn.Delivery.Failed, or - for nobody. 404 when there is none."
                ),
            ),
            OpenApiParameter(
                "ReplyTo",
                str,
                OpenApiParameter.HEADER,
                description="Event type of replies to this message: each receiver may send one. "
                "With `; destination=` and a subscriber, or subscriber/subscription, it goes there "
                "only. 404 when there is none, 403 when the publisher may not publish it.",
            ),
        ],
    )
    def post(self, request: Request, event_type: str) -> HttpResponse:
        """Publish a message: the body, of any content type that the event type accepts.

        An event type with a schema, or with a JSON content type, accepts JSON only: without
        Content-Type, or with curl's default, the body is read as JSON; any other content type gets
        415. All headers except hop-by-hop ones, cookies and credentials are stored and may be used
        in filters. 202 when the message and all its deliveries are on disk. For a SYNC event type
        the answer is that of its one endpoint, which is called meanwhile, whatever its status.
        """
        publisher = publisher_of(request)
        draft = draft_of_request(publisher, event_type, request._request)
        published = publish_draft(publisher, draft, request.META)
        if isinstance(published, HttpResponse):
            return published
        return HttpResponse(
            orjson.dumps(describe_accepted(published)), status=202, content_type="application/json"
        )


def draft_of_request(publisher: Publisher, event_type: str, request: HttpRequest) -> Draft:
    """Return the message of a request; raise Problem, also when the publisher is too fast."""
    published = allowed_event_type(publisher, event_type)
    headers, content_type = with_content_type(incoming.sent_headers(request.META), published)
    limit_rate(publisher, request.META)
    return Draft(
        event_type=published,
        headers=headers,
        body=read_body(request, max_bytes=settings.ENVIRONMENT.max_message_bytes),
        content_type=content_type,
        idempotency_key=incoming.idempotency_key(headers),
    )


def publish_draft(
    publisher: Publisher, draft: Draft, environ: Mapping[str, Any]
) -> Accepted | HttpResponse:
    """Publish it; for a SYNC event type return the endpoint's answer. Raise Problem."""
    try:
        if draft.event_type.kind == Kind.SYNC:
            return sync.publish_sync(
                publisher, draft, credential=incoming.forwarded_credential(environ)
            )
        (accepted,) = publish(publisher, [draft])
    except PublishRefusedError as refused:
        raise problem_of_refusal(refused) from None
    return accepted


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


def with_content_type(headers: dict[str, str], event_type: EventType) -> tuple[dict[str, str], str]:
    """Return the message's headers and the content type for its receivers; raise Problem.

    The event type's content type counts: clients such as curl call every body a form by default.
    """
    sent = headers.get("content-type", "")
    if len(sent) > MAX_CONTENT_TYPE_LENGTH:
        raise Problem(
            400, "invalid", f"Content-Type is longer than {MAX_CONTENT_TYPE_LENGTH} characters."
        )
    declared = event_type.content_type
    if not takes_json(event_type):
        return headers, sent or declared
    if media_type(sent) in ("", FORM_TYPE):
        content_type = declared if is_json(declared) else JSON
        return headers | ({"content-type": content_type} if sent else {}), content_type
    if is_json(sent) or media_type(sent) == media_type(declared):
        return headers, sent
    detail = (
        f"Messages of {event_type} are JSON, not {sent[:100]}. "
        f"Send JSON with Content-Type: {JSON}; "
        "or have an administrator give the event type another content type, and no schema."
    )
    raise Problem(415, "unsupported-media-type", detail)


def describe_accepted(accepted: Accepted) -> dict[str, Any]:
    return {"id": public_id(accepted.message_id), "deliveries": accepted.deliveries}


def problem_of_refusal(refused: PublishRefusedError, **members: Any) -> Problem:
    if refused.path is not None:
        members["path"] = refused.path
    code = refused.code or _CODES.get(refused.status, "refused")
    return Problem(refused.status, code, refused.detail, **members)
