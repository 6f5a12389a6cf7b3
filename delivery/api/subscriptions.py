"""Subscriptions, and what becomes of their backlog when their status changes."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.models import EndpointState
from delivery.support import toggle
from subscriptions.api.authentication import actor_of
from subscriptions.api.subscriptions import (
    NewSubscriptionSerializer,
    SubscriptionSerializer,
    SubscriptionViews,
)
from subscriptions.models import Subscription, SubscriptionStatus


@extend_schema_serializer(component_name="Subscription")
class StatefulSubscriptionSerializer(SubscriptionSerializer):
    endpoint_state = serializers.ChoiceField(
        choices=EndpointState.choices,
        source="endpoint_summary.state",
        read_only=True,
        allow_null=True,
        help_text="DOWN: it failed, and waits for its next try. DISABLED, FROZEN: its URL is left alone, see GET url-health. Null of a PULL subscription.",
    )

    class Meta(SubscriptionSerializer.Meta):
        fields = [*SubscriptionSerializer.Meta.fields, "endpoint_state"]


@extend_schema_serializer(component_name="NewSubscription")
class NewStatefulSubscriptionSerializer(StatefulSubscriptionSerializer, NewSubscriptionSerializer):
    class Meta(NewSubscriptionSerializer.Meta):
        fields = [*NewSubscriptionSerializer.Meta.fields, "endpoint_state"]


@extend_schema_serializer(component_name="SubscriptionChange")
class SubscriptionChangeSerializer(StatefulSubscriptionSerializer):
    """A change of a subscription. `backlog` says what to do, with `status: ACTIVE`, with what was held."""

    backlog = serializers.ChoiceField(choices=["deliver", "cancel"], required=False, write_only=True)

    class Meta(StatefulSubscriptionSerializer.Meta):
        fields = [*StatefulSubscriptionSerializer.Meta.fields, "backlog"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "backlog" in attrs and attrs.get("status") != SubscriptionStatus.ACTIVE:
            raise serializers.ValidationError({"backlog": "Give it together with status: ACTIVE."})
        return super().validate(attrs)

    def update(self, instance: Subscription, validated_data: dict[str, Any]) -> Subscription:
        status = validated_data.pop("status", None)
        backlog = validated_data.pop("backlog", "deliver")
        actor = actor_of(self.context["request"])
        super().update(instance, validated_data)
        if status == SubscriptionStatus.INACTIVE:
            toggle.deactivate(instance, actor=actor)
        elif status == SubscriptionStatus.ACTIVE:
            toggle.activate(instance, backlog=backlog, actor=actor)
        instance.refresh_from_db(fields=["status", "updated_at", "cancellation_id"])
        return instance


class StatefulSubscriptionViews(SubscriptionViews):
    """Subscriptions that can be made ACTIVE and INACTIVE, and tell the states of their endpoints."""

    serializer_class = StatefulSubscriptionSerializer

    def get_queryset(self) -> QuerySet[Subscription]:
        rows = super().get_queryset()
        # Of one that is changed it is read after the change.
        return rows.select_related("endpoint_summary") if self.action in ("list", "retrieve") else rows

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the fields that are given.

        `status: INACTIVE` holds the subscription's deliveries, and messages published while a subscription is INACTIVE are not
        kept for it. `status: ACTIVE` delivers what was held in order, or cancels it: see `backlog`.
        """
        return super().partial_update(request, **place)

    def get_serializer_class(self) -> type[SubscriptionSerializer]:
        own = {
            "create": NewStatefulSubscriptionSerializer,
            "partial_update": SubscriptionChangeSerializer,
        }
        return own.get(self.action, self.serializer_class)

    def snapshot(self, instance: Subscription) -> dict[str, Any]:
        said = super().snapshot(instance)
        if self.action == "partial_update":
            # The toggle records it, with its reason.
            del said["status"]
        return said

    def record(self, action: str, instance: Any, **states: Any) -> None:
        if action != "changed" or _is_more_than_toggled(self.request):
            super().record(action, instance, **states)


def _is_more_than_toggled(request: Request) -> bool:
    return bool(set(request.data) - {"status", "backlog"})
