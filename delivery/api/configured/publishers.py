"""The resource `publishers`: applications that may publish."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from delivery.api.base.resource import Resource
from delivery.api.base.strict import StrictModel, Text
from subscriptions.matching.destinations import UnknownDestinationError
from subscriptions.matching.errors_to import check_errors_to
from subscriptions.models import EventType, Publisher
from subscriptions.values.names import MAX_NAME_LENGTH

MAX_EVENT_TYPES = 1000


class EventTypeNames(serializers.ListField):
    """The names of the event types that the publisher may publish; null for all."""

    def __init__(self, **options: Any) -> None:
        child = Text(max_length=MAX_NAME_LENGTH)
        super().__init__(child=child, allow_null=True, max_length=MAX_EVENT_TYPES, **options)

    def get_attribute(self, instance: Publisher) -> Any:
        return None if instance.all_event_types else instance.event_types.all()

    def to_representation(self, data: Any) -> list[str]:
        return sorted(event_type.name for event_type in data)

    def to_internal_value(self, data: Any) -> list[Any]:
        names = super().to_internal_value(data)
        event_types = {
            event_type.name: event_type for event_type in EventType.objects.filter(name__in=names)
        }
        if missing := [name for name in names if name not in event_types]:
            raise serializers.ValidationError(
                f"There is no event type {missing[0]}; create it first."
            )
        return list(event_types.values())


class PublisherSerializer(StrictModel):
    """A publisher."""

    event_types = EventTypeNames(
        required=False, help_text="Event types that it may publish; null (the default) for all."
    )

    class Meta:
        model = Publisher
        fields = ["name", "description", "event_types", "errors_to", "created_at", "updated_at"]

    def validate_errors_to(self, value: str) -> str:
        try:
            check_errors_to(value)
        except UnknownDestinationError as unknown:
            raise serializers.ValidationError(unknown.detail) from None
        return value

    def create(self, validated_data: dict[str, Any]) -> Publisher:
        publisher: Publisher = super().create(_with_extent(validated_data))
        return publisher

    def update(self, instance: Publisher, validated_data: dict[str, Any]) -> Publisher:
        publisher: Publisher = super().update(instance, _with_extent(validated_data))
        return publisher


def _with_extent(values: Mapping[str, Any]) -> dict[str, Any]:
    if "event_types" not in values:
        return dict(values)
    event_types = values["event_types"]
    return {**values, "event_types": event_types or [], "all_event_types": event_types is None}


class PublisherViews(Resource):
    queryset = Publisher.objects.prefetch_related("event_types")
    serializer_class = PublisherSerializer

    def snapshot(self, instance: Publisher) -> dict[str, Any]:
        names = sorted(event_type.name for event_type in instance.event_types.all())
        return super().snapshot(instance) | {"event_types": names}
