"""Deliveries: listed, read with their attempts, and cancelled."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery import lifecycle
from delivery.api.message_query import MessageIdField
from delivery.api.shapes import DeliveryDetailSerializer, DeliverySerializer
from delivery.models import Attempt, Delivery
from delivery.states import Status
from subscriptions.api.authentication import actor_of
from subscriptions.api.pages import ById, KeysetPages, Order
from subscriptions.api.problems import Problem
from subscriptions.api.strict import Strict, Text
from subscriptions.api.views import MANAGE, READ, ApiView
from subscriptions.names import MAX_NAME_LENGTH

# Of a delivery that has been tried for weeks.
SHOWN_ATTEMPTS = 200


class DeliveryQuery(ById):
    """The query parameters of the list of deliveries."""

    status = serializers.ChoiceField(choices=Status.choices, required=False)
    subscriber = Text(required=False, max_length=MAX_NAME_LENGTH)
    subscription = Text(required=False, max_length=MAX_NAME_LENGTH, help_text="An id, or a name.")
    message = MessageIdField(required=False, help_text="msg_…")
    since = serializers.DateTimeField(
        required=False, help_text="Of messages published at this time or later."
    )
    until = serializers.DateTimeField(required=False, help_text="Of messages published before this time.")


_LOOKUPS = {
    "status": "status",
    "subscriber": "subscription__subscriber__name",
    "message": "message_id",
    "since": "message__published_at__gte",
    "until": "message__published_at__lt",
}
_LONGEST_ID = 18


class DeliveryViews(ApiView, GenericViewSet[Delivery]):
    order = Order(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": DeliveryQuery}
    queryset = Delivery.objects.select_related("message__event_type", "subscription__subscriber").defer(
        "message__body", "message__headers", "subscription__headers", "subscription__auth"
    )
    serializer_class = DeliverySerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return MANAGE if self.action == "cancel" else READ

    def list(self, request: Request) -> Response:
        """List deliveries, the newest first."""
        page = self.paginate_queryset(_selected(self.get_queryset(), self.query))
        return self.get_paginated_response(DeliverySerializer(page, many=True).data)

    @extend_schema(responses=DeliveryDetailSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Read a delivery with its newest 200 attempts; `attempt_count` is how many it had."""
        return self._shown()

    @extend_schema(request=None, responses=DeliveryDetailSerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """Settle a PENDING delivery as CANCELLED: it is not sent again. 409 when it is settled already."""
        Strict(data=request.data).is_valid(raise_exception=True)
        delivery = self.get_object()
        if not lifecycle.cancel([delivery.pk], actor=actor_of(request)):
            raise Problem(409, "not-pending", f"It is {delivery.status}; only PENDING ones can be cancelled.")
        return self._shown()

    def _shown(self) -> Response:
        attempts = Prefetch("history", Attempt.objects.newest(SHOWN_ATTEMPTS))
        delivery = get_object_or_404(self.get_queryset().prefetch_related(attempts), pk=self.kwargs["pk"])
        return Response(DeliveryDetailSerializer(delivery).data)


def _selected(rows: QuerySet[Delivery], query: Mapping[str, Any]) -> QuerySet[Delivery]:
    rows = rows.filter(**{lookup: query[name] for name, lookup in _LOOKUPS.items() if name in query})
    subscription = query.get("subscription")
    if subscription is None:
        return rows
    if subscription.isascii() and subscription.isdigit() and len(subscription) <= _LONGEST_ID:
        return rows.filter(subscription=int(subscription))
    return rows.filter(subscription__name=subscription)
