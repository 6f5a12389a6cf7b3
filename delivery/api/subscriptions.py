"""Subscriptions with their status, and its effect on their backlog."""

from typing import Any

from django.db.models import QuerySet
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
from delivery.api.subscribing.subscription_resource import (
    NewSubscriptionSerializer,
    SubscriptionSerializer,
    SubscriptionViews,
)
from delivery.models import EndpointState
from subscriptions.checks.twins import twin_warning
from subscriptions.models import Subscription, SubscriptionStatus


@extend_schema_serializer(component_name="Subscription")
class StatefulSubscriptionSerializer(HoldingFields, SubscriptionSerializer):
    endpoint_state = serializers.ChoiceField(
        choices=EndpointState.choices,
        source="endpoint_summary.state",
        read_only=True,
        allow_null=True,
        help_text=(
            "DOWN: it failed and waits for its next try. DISABLED, FROZEN: its URL is stopped, "
            "see GET url-health. Null for a PULL subscription."
        ),
    )

    class Meta(SubscriptionSerializer.Meta):
        fields = [*SubscriptionSerializer.Meta.fields, "until", "catch_up_rate", "endpoint_state"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        check_holding(attrs, now=timezone.now(), status="status")
        return super().validate(attrs)


@extend_schema_serializer(component_name="NewSubscription")
class NewStatefulSubscriptionSerializer(StatefulSubscriptionSerializer, NewSubscriptionSerializer):
    class Meta(NewSubscriptionSerializer.Meta):
        fields = [
            *NewSubscriptionSerializer.Meta.fields,
            "until",
            "catch_up_rate",
            "endpoint_state",
        ]

    def create(self, validated_data: dict[str, Any]) -> Subscription:
        is_held = validated_data.get("status") == SubscriptionStatus.HELD
        written, toggled = split_status(validated_data) if is_held else (validated_data, {})
        subscription: Subscription = super().create(written)
        # The toggle writes a journal entry, so that the waiting deliveries have a reason.
        apply_status(subscription, toggled, actor=actor_of(self.context["request"]))
        return subscription


@extend_schema_serializer(component_name="SubscriptionChange")
class SubscriptionChangeSerializer(StatefulSubscriptionSerializer):
    """A change of a subscription.

    With `status: ACTIVE`, `backlog` decides whether waiting deliveries are delivered or cancelled.
    """

    backlog = BacklogField()

    class Meta(StatefulSubscriptionSerializer.Meta):
        fields = [*StatefulSubscriptionSerializer.Meta.fields, "backlog"]

    def update(self, instance: Subscription, validated_data: dict[str, Any]) -> Subscription:
        written, toggled = split_status(validated_data)
        super().update(instance, written)
        apply_status(instance, toggled, actor=actor_of(self.context["request"]))
        instance.refresh_from_db(fields=[*TOGGLED, "updated_at", "cancellation_id"])
        return instance


class StatefulSubscriptionViews(SubscriptionViews):
    """Subscriptions whose status can be changed, with the state of their endpoints."""

    serializer_class = StatefulSubscriptionSerializer

    def get_queryset(self) -> QuerySet[Subscription]:
        rows = super().get_queryset()
        # For a change the summary is loaded after it.
        return (
            rows.select_related("endpoint_summary") if self.action in ("list", "retrieve") else rows
        )

    def create(self, request: Request, **place: str) -> Response:
        """Create one; 409 when the name is in use.

        If the subscriber has another one for the same messages, the header `Inturn-Warning` says
        so.
        """
        return _warned(super().create(request, **place))

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the fields that are given.

        `status: HELD` makes the subscription's deliveries wait, including those of messages
        published meanwhile. `status: SHADOW` records each match as a delivery with the status
        SHADOW, and sends none; earlier deliveries wait. `status: INACTIVE` holds its deliveries,
        and messages published while a subscription is INACTIVE are not kept for it. `status:
        ACTIVE` delivers the backlog in order, or cancels it: see `backlog`. If the subscriber has
        another subscription for the same messages, the header `Inturn-Warning` says so.
        """
        return _warned(super().partial_update(request, **place))

    def get_serializer_class(self) -> type[SubscriptionSerializer]:
        own = {
            "create": NewStatefulSubscriptionSerializer,
            "partial_update": SubscriptionChangeSerializer,
        }
        return own.get(self.action, self.serializer_class)

    def snapshot(self, instance: Subscription) -> dict[str, Any]:
        values = super().snapshot(instance)
        if self.action == "partial_update":
            return {name: value for name, value in values.items() if name not in TOGGLED}
        return values

    def record(self, action: str, instance: Any, **states: Any) -> None:
        if action != "changed" or _is_more_than_toggled(self.request):
            super().record(action, instance, **states)


def _is_more_than_toggled(request: Request) -> bool:
    return bool(set(request.data) - TOGGLING)


def _warned(answer: Response) -> Response:
    row = Subscription.objects.select_related("subscriber", "event_type").get(pk=answer.data["id"])
    if warning := twin_warning(row):
        answer["Inturn-Warning"] = warning
    return answer
