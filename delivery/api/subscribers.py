"""Subscribers with their status, and its effect on their backlog."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.authentication import actor_of
from delivery.api.holding import (
    TOGGLED,
    TOGGLING,
    BacklogField,
    HoldingFields,
    apply_status,
    check_holding,
    split_status,
)
from delivery.api.subscribing.subscriber_resource import SubscriberSerializer, SubscriberViews
from subscriptions.models import Subscriber, SubscriberStatus


@extend_schema_serializer(component_name="Subscriber")
class StatefulSubscriberSerializer(HoldingFields, SubscriberSerializer):
    """A subscriber. `refill_level` is a fifth of `max_queued_to_send` unless given.

    SERIAL: one delivery at a time, in the order of publication. CONCURRENT: up to `max_in_flight`
    at a time, in no order, and none waits for another that failed. A change takes effect within two
    seconds, after the deliveries under way; deliveries that were postponed while the subscriber was
    CONCURRENT are sent in order once it is SERIAL. HELD: messages for it are stored, and wait.
    INACTIVE: none of its subscriptions matches, and its waiting deliveries are held; each
    subscription keeps its own status for afterwards.
    """

    status = serializers.ChoiceField(choices=SubscriberStatus.choices, required=False)

    class Meta(SubscriberSerializer.Meta):
        fields = [*SubscriberSerializer.Meta.fields, "status", "until", "catch_up_rate"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        check_holding(attrs, now=timezone.now(), status="status")
        return super().validate(attrs)

    def create(self, validated_data: dict[str, Any]) -> Subscriber:
        written, toggled = split_status(validated_data)
        subscriber: Subscriber = super().create(written)
        apply_status(subscriber, toggled, actor=actor_of(self.context["request"]))
        return subscriber


@extend_schema_serializer(component_name="SubscriberChange")
class SubscriberChangeSerializer(StatefulSubscriberSerializer):
    """A change of a subscriber.

    With `status: ACTIVE`, `backlog` decides whether waiting deliveries are delivered or cancelled.
    """

    backlog = BacklogField()

    class Meta(StatefulSubscriberSerializer.Meta):
        fields = [*StatefulSubscriberSerializer.Meta.fields, "backlog"]

    def update(self, instance: Subscriber, validated_data: dict[str, Any]) -> Subscriber:
        written, toggled = split_status(validated_data)
        super().update(instance, written)
        apply_status(instance, toggled, actor=actor_of(self.context["request"]))
        instance.refresh_from_db()
        return instance


class StatefulSubscriberViews(SubscriberViews):
    """Subscribers that can be made ACTIVE, HELD and INACTIVE."""

    serializer_class = StatefulSubscriberSerializer

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the fields that are given.

        `status: HELD` makes its messages wait; `status: INACTIVE` holds the waiting ones and keeps
        none that are published meanwhile. `status: ACTIVE` delivers the backlog in order, or
        cancels it: see `backlog`. Subscriptions that are held themselves stay held.
        """
        return super().partial_update(request, **place)

    def get_serializer_class(self) -> type[SubscriberSerializer]:
        return (
            SubscriberChangeSerializer if self.action == "partial_update" else self.serializer_class
        )

    def snapshot(self, instance: Subscriber) -> dict[str, Any]:
        values = super().snapshot(instance)
        if self.action == "partial_update":
            return {name: value for name, value in values.items() if name not in TOGGLED}
        return values

    def record(self, action: str, instance: Any, **states: Any) -> None:
        if action != "changed" or set(self.request.data) - TOGGLING:
            super().record(action, instance, **states)
