"""`POST events/{event type}/messages`: publish one message, whose body is the request's."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from delivery.api import sync
from delivery.api.base.authentication import publisher_of
from delivery.api.base.views import PUBLISH, ApiView
from delivery.incoming.drafting import describe_accepted, draft_of_request, problem_of_refusal
from delivery.incoming.headers import IDEMPOTENCY_KEY, forwarded_credential
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.publish import publish
from delivery.publishing.stored_messages import Accepted
from subscriptions.models import Kind, Publisher


class AcceptedSerializer(serializers.Serializer[Any]):
    """A message on disk, with all deliveries."""

    id = serializers.CharField(help_text="msg_…")
    deliveries = serializers.IntegerField(help_text="How many subscriptions it goes to.")


class PublishView(ApiView):
    """The complete path of a message; see `delivery.incoming.short_way` for plain posts."""

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
                IDEMPOTENCY_KEY,
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
        415. All headers except hop-by-hop headers, cookies and credentials are stored and may be
        used in filters. 202 when the message and all deliveries are on disk. For a SYNC event type
        the answer is the endpoint's, which is called meanwhile, whatever the status.
        """
        publisher = publisher_of(request)
        draft = draft_of_request(publisher, event_type, request._request)
        published = publish_draft(publisher, draft, request.META)
        if isinstance(published, HttpResponse):
            return published
        return HttpResponse(
            orjson.dumps(describe_accepted(published)), status=202, content_type="application/json"
        )


def publish_draft(
    publisher: Publisher, draft: Draft, environ: Mapping[str, Any]
) -> Accepted | HttpResponse:
    """Publish it; for a SYNC event type return the endpoint's answer. Raise Problem."""
    try:
        if draft.event_type.kind == Kind.SYNC:
            return sync.publish_sync(publisher, draft, credential=forwarded_credential(environ))
        (accepted,) = publish(publisher, [draft])
    except PublishRefusedError as refused:
        raise problem_of_refusal(refused) from None
    return accepted
