"""The resource `event-types`: the kinds of messages that may be published."""

from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.resource import Resource
from delivery.api.base.strict import JSONValue, StrictModel, configured_fields
from delivery.api.subscribing.subscription_fields import PatternsField
from delivery.incoming.problems import Problem
from subscriptions.checks import event_type
from subscriptions.checks.event_type import case_warning
from subscriptions.models import EventType
from subscriptions.values.media_types import JSON
from subscriptions.values.names import is_reserved


@extend_schema_field({"type": "object", "additionalProperties": True, "nullable": True})
class JSONSchema(JSONValue):
    """A JSON Schema, restricted to objects."""


class EventTypeSerializer(StrictModel):
    """An event type. `sample` is the body of a message as publishers send it."""

    field_classes: ClassVar[Mapping[str, Any]] = {
        "json_schema": JSONSchema,
        "forward_headers": PatternsField,
    }

    class Meta:
        model = EventType
        fields = [*configured_fields(EventType), "created_at", "updated_at"]
        extra_kwargs: ClassVar[dict[str, Any]] = {"content_type": {"default": JSON}}

    def refusals(self, attrs: Mapping[str, Any]) -> Mapping[str, str]:
        return event_type.refusals(attrs, stored=self.instance)


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
        row: EventType = super().locked(to_delete=to_delete)
        if is_reserved(row.name):
            raise Problem(
                409,
                "built-in",
                f"{row} is published by Inturn itself and cannot be changed; subscribe to it.",
            )
        return row


def _warned(answer: Response) -> Response:
    if warning := case_warning(answer.data["name"]):
        answer["Inturn-Warning"] = warning
    return answer
