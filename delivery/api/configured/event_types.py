"""The resource `event-types`: the kinds of messages that may be published."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.resource import Resource
from delivery.api.base.strict import JSONValue, StrictModel, Text
from delivery.api.subscribing.subscription_fields import PatternsField
from delivery.incoming.problems import Problem
from subscriptions.checks.similar_names import case_warning
from subscriptions.models import EventType
from subscriptions.values.json_schemas import JSONSchemaError, check_json_schema
from subscriptions.values.media_types import validate_media_type
from subscriptions.values.names import is_reserved, validate_unreserved


@extend_schema_field({"type": "object", "additionalProperties": True, "nullable": True})
class JSONSchema(JSONValue):
    """A JSON Schema, restricted to objects."""


class EventTypeSerializer(StrictModel):
    """An event type. `sample` is the body of a message as publishers send it."""

    content_type = Text(
        max_length=100, default="application/json", validators=[validate_media_type]
    )
    json_schema = JSONSchema(
        required=False,
        allow_null=True,
        help_text="JSON Schema, Draft 2020-12, that every message must satisfy.",
    )

    forward_headers = PatternsField(
        required=False,
        help_text="What new subscriptions send along of a message's headers unless they say "
        "otherwise: names, or beginnings with * at the end.",
    )

    class Meta:
        model = EventType
        fields = [
            "name",
            "kind",
            "content_type",
            "description",
            "sample",
            "json_schema",
            "durability",
            "ttl_seconds",
            "forward_headers",
            "errors_when",
            "created_at",
            "updated_at",
        ]
        extra_kwargs = {
            "name": {
                "validators": [*EventType._meta.get_field("name").validators, validate_unreserved]
            }
        }

    def validate_kind(self, value: str) -> str:
        if self.instance is not None and value != self.instance.kind:
            raise serializers.ValidationError(
                "It cannot be changed, because published messages are handled by it. "
                "Create another event type."
            )
        return value

    def validate_json_schema(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            check_json_schema(value)
        except JSONSchemaError as error:
            raise serializers.ValidationError(str(error)) from None
        return value


class EventTypeViews(Resource):
    queryset = EventType.objects.all()
    serializer_class = EventTypeSerializer

    def create(self, request: Request, **place: str) -> Response:
        """Create one; 409 when the name is in use.

        If another name differs only in case, the header `Inturn-Warning` says so.
        """
        return _warned(super().create(request, **place))

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the given fields.

        If another name differs only in case, the header `Inturn-Warning` says so.
        """
        return _warned(super().partial_update(request, **place))

    def locked(self, *, to_delete: bool = False) -> EventType:
        event_type: EventType = super().locked(to_delete=to_delete)
        if is_reserved(event_type.name):
            raise Problem(
                409,
                "built-in",
                f"{event_type} is published by Inturn itself and cannot be changed; "
                "subscribe to it.",
            )
        return event_type


def _warned(answer: Response) -> Response:
    if warning := case_warning(answer.data["name"]):
        answer["Inturn-Warning"] = warning
    return answer
