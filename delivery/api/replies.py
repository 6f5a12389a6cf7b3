"""`POST /replies/{token}`: the endpoint of a message with `ReplyTo` replies, once."""

from functools import lru_cache
from typing import Any

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.views import ApiView
from delivery.api.publish import AcceptedSerializer
from delivery.incoming.bodies import read_body
from delivery.incoming.content_types import with_content_type
from delivery.incoming.drafting import describe_accepted, problem_of_refusal
from delivery.incoming.headers import sent_headers
from delivery.incoming.problems import Problem
from delivery.incoming.rate_limit import Bucket
from delivery.publishing import replies
from delivery.publishing.drafts import Draft, PublishRefusedError, check_body
from delivery.publishing.replies import Replied, ReplyRefusedError
from delivery.publishing.stored_messages import Accepted

# There is a single reply: further posts are repetitions, or a client out of control.
POSTS = 20
SECONDS = 60

SCHEMA: dict[str, Any] = {
    "request": {"application/json": OpenApiTypes.ANY, "*/*": OpenApiTypes.BINARY},
    "responses": {202: AcceptedSerializer},
}


class ReplyView(ApiView):
    """The token authorizes the reply, so no key is needed."""

    authentication_classes = []
    permission_classes = []

    @extend_schema(operation_id="reply", auth=[], **SCHEMA)
    def post(self, request: Request, token: str) -> Response:
        """Reply to a message at the URL in the header `Inturn-Reply`.

        The body is a message of the event type that the publisher named by `ReplyTo`, and has to
        fit the event type. 202 when the reply is on disk with all deliveries. Repeating the same
        body returns the same answer; a different body gets 409, a removed message 410.
        """
        try:
            return answer_reply(request, replies.delivery_of_token(token))
        except ReplyRefusedError as refused:
            raise problem_of_reply(refused) from None


def answer_reply(request: Request, delivery_id: int) -> Response:
    """Publish the request's body as the reply to a delivery; raise Problem."""
    _limit_rate(delivery_id)
    try:
        return Response(describe_accepted(_reply(request, delivery_id)), status=202)
    except ReplyRefusedError as refused:
        raise problem_of_reply(refused) from None
    except PublishRefusedError as refused:
        raise problem_of_refusal(refused) from None


def problem_of_reply(refused: ReplyRefusedError) -> Problem:
    return Problem(refused.status, refused.code, refused.detail)


def _reply(request: Request, delivery_id: int) -> Accepted:
    replied = replies.find_replied(delivery_id)
    body = read_body(request._request, max_bytes=settings.ENVIRONMENT.max_message_bytes)
    earlier = replies.earlier_reply(replied, body)
    if earlier is not None:
        return earlier
    return replies.publish_reply(replied, _draft(request, replied, body))


def _draft(request: Request, replied: Replied, body: bytes) -> Draft:
    reply_to = replies.reply_target(replied)
    sent, content_type = with_content_type(sent_headers(request.META), reply_to.event_type)
    draft = Draft(
        event_type=reply_to.event_type,
        headers=replies.headers_of_reply(replied, sent),
        body=body,
        content_type=content_type,
        destination=replies.destination_of_reply(reply_to),
    )
    check_body(draft)
    return draft


@lru_cache(maxsize=10_000)
def _bucket(_delivery_id: int) -> Bucket:
    return Bucket(POSTS, SECONDS)


def _limit_rate(delivery_id: int) -> None:
    if wait := _bucket(delivery_id).wait_seconds(delivery_id, messages=1):
        raise Problem(
            429,
            "too-fast",
            f"A delivery takes {POSTS} replies in {SECONDS} s; wait {wait} s. One is enough.",
            headers={"Retry-After": str(wait)},
        )
