"""The edited copy of a delivery's message: from the request's text to plain values."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework import serializers

from delivery.api.base.strict import Strict
from delivery.incoming.batch_items import body_of, headers_of
from delivery.incoming.bodies import parse_json, read_body, too_large
from delivery.incoming.content_types import with_content_type
from delivery.incoming.headers import MAX_HEADER_BYTES, storable_headers
from delivery.incoming.problems import Problem, invalid_field
from delivery.models import Delivery
from delivery.support.resubmit import Edit

_FIELDS = frozenset({"body", "body_base64", "headers"})
# Base64 takes a third more space than the bytes, and JSON may escape every character.
_GROWTH = 6


class EditSerializer(Strict):
    """An empty object resends the delivery unchanged.

    Fields describe an edited copy of the message.
    """

    body = serializers.JSONField(
        required=False, help_text="Any JSON; stored as the bytes it is sent as."
    )
    body_base64 = serializers.CharField(required=False, help_text="Instead of body: any bytes.")
    headers = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="Replaces all headers of the message; if omitted, they stay.",
    )


def edit_of(request: HttpRequest, delivery: Delivery) -> Edit | None:
    """Return the edited copy that the request describes, None for an unchanged one.

    Raise Problem.
    """
    most = settings.ENVIRONMENT.max_message_bytes
    body = read_body(request, max_bytes=most * _GROWTH + MAX_HEADER_BYTES * _GROWTH)
    content = parse_json(body) if body.strip() else {}
    if not isinstance(content, dict):
        raise Problem(
            400, "invalid", "Send an object with body or body_base64 and, if wanted, headers."
        )
    if unknown := set(content) - _FIELDS:
        raise invalid_field(
            min(unknown), f"There is no such field; known are {', '.join(sorted(_FIELDS))}."
        )
    if not content:
        return None
    edited = body_of(content, body.decode())
    if len(edited) > most:
        raise too_large(most)
    headers, content_type = with_content_type(
        _headers(content, delivery), delivery.message.event_type
    )
    return Edit(headers=headers, content_type=content_type, body=edited)


def _headers(content: Mapping[str, Any], delivery: Delivery) -> dict[str, str]:
    if "headers" not in content:
        return dict(delivery.message.headers)
    headers = headers_of(content["headers"])
    if "body" in content:
        headers.setdefault("content-type", "application/json")
    return storable_headers(headers.items())
