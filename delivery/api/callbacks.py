"""`POST /callbacks/{token}`: the endpoint that took a QUEUE message answers it, once."""

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.views import ApiView
from delivery.api.publish import AcceptedSerializer
from delivery.incoming.bodies import read_body
from delivery.incoming.content_types import MAX_CONTENT_TYPE_LENGTH
from delivery.incoming.headers import sent_headers
from delivery.incoming.problems import Problem
from delivery.incoming.rate_limit import Bucket
from delivery.models import Callback
from delivery.models.message import public_id
from delivery.publishing import callbacks
from delivery.publishing.callback_urls import CallbackRefusedError

# A callback is answered once: further posts are repetitions, or a client out of control.
POSTS = 20
SECONDS = 60

_CODES = {400: "callback-refused", 404: "no-such-callback", 409: "answered-already", 410: "expired"}


class CallbackView(ApiView):
    """The token authorizes the answer, so no key is needed."""

    authentication_classes = []
    permission_classes = []

    @extend_schema(
        operation_id="answer_callback",
        request={"application/json": OpenApiTypes.ANY, "*/*": OpenApiTypes.BINARY},
        responses={202: AcceptedSerializer},
        auth=[],
    )
    def post(self, request: Request, token: str) -> Response:
        """Answer a QUEUE message at the `CallbackURL` that came with it; the body may be anything.

        202 when the answer is on disk; it is then delivered to the URL that the publisher gave.
        Repeating the same body returns the same answer; a different body gets 409. A `CallbackURL`
        header requests an answer to the answer.
        """
        try:
            return Response(_accepted(_answer(request, token)), status=202)
        except CallbackRefusedError as refused:
            raise Problem(refused.status, _CODES[refused.status], refused.detail) from None


def _answer(request: Request, token: str) -> int:
    now = timezone.now()
    callback = callbacks.find_callback(token)
    callbacks.refuse_expired(callback, now=now)
    _limit_rate(callback)
    headers = sent_headers(request.META)
    content_type = headers.get("content-type", "")
    if len(content_type) > MAX_CONTENT_TYPE_LENGTH:
        raise Problem(
            400, "invalid", f"Content-Type is longer than {MAX_CONTENT_TYPE_LENGTH} characters."
        )
    body = read_body(request._request, max_bytes=settings.ENVIRONMENT.max_message_bytes)
    received = callbacks.CallbackAnswer(headers=headers, content_type=content_type, body=body)
    return callbacks.answer_callback(callback, received, now=now)


def _accepted(message_id: int) -> dict[str, Any]:
    return {"id": public_id(message_id), "deliveries": 1}


@lru_cache(maxsize=10_000)
def _bucket(_callback_id: int) -> Bucket:
    return Bucket(POSTS, SECONDS)


def _limit_rate(callback: Callback) -> None:
    if wait := _bucket(callback.pk).wait_seconds(callback.pk, messages=1):
        raise Problem(
            429,
            "too-fast",
            f"A callback takes {POSTS} posts in {SECONDS} s; wait {wait} s. One is enough.",
            headers={"Retry-After": str(wait)},
        )
