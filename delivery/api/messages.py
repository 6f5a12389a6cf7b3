"""Messages: search, read and explain."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import Count, Prefetch, QuerySet
from django.db.models.functions import Length
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import key_of_request
from delivery.api.base.pages import KeysetPages, PageOrder
from delivery.api.base.strict import Strict
from delivery.api.base.views import PUBLISH, READ, ApiView
from delivery.api.message_query import MessageQuery, page_of_search
from delivery.api.shapes import DELIVERY_RELATIONS, MessageDetailSerializer, MessageSerializer
from delivery.models import Attempt, Callback, Delivery, Message, Reply
from delivery.models.message import parse_public_id
from delivery.models.reach import messages_within
from delivery.publishing.explain import explain_message
from delivery.publishing.reply_headers import may_be_replied_to
from subscriptions.reach import reach_of_key

SHOWN_DELIVERIES = 100
SHOWN_ATTEMPTS = 10
SHOWN_CALLBACKS = 100
SHOWN_REPLIES = 100


class ExplanationSerializer(serializers.Serializer[Any]):
    """Whether a subscription qualifies for the message today, with the reason."""

    subscription_id = serializers.IntegerField(source="subscription.pk")
    subscription = serializers.CharField(source="subscription.name")
    subscriber = serializers.CharField(source="subscription.subscriber.name")
    qualifies = serializers.BooleanField()
    reason = serializers.CharField()


class ExplanationsSerializer(serializers.Serializer[Any]):
    """An entry for every subscription of the message's event type."""

    results = ExplanationSerializer(many=True)


class MessageViews(ApiView, GenericViewSet[Message]):
    order = PageOrder(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": MessageQuery}
    queryset = Message.objects.select_related("event_type", "publisher")
    serializer_class = MessageSerializer

    required_scopes = READ | PUBLISH
    limited_actions = frozenset({"list", "retrieve", "explain"})

    def get_queryset(self) -> QuerySet[Message]:
        return messages_within(super().get_queryset(), reach_of_key(key_of_request(self.request)))

    def list(self, request: Request) -> Response:
        """Search messages, newest first."""
        rows = self.get_queryset().defer("body", "headers").annotate(size=Length("body"))
        page = page_of_search(rows, self.query, self.paginate_queryset)
        serializer = MessageSerializer(page, many=True, context={"counts": _counts(page)})
        return self.get_paginated_response(serializer.data)

    @extend_schema(responses=MessageDetailSerializer)
    def retrieve(self, request: Request, id: str) -> Response:
        """Read a message with the first 100 deliveries and the newest 10 attempts of each.

        All deliveries are in `GET deliveries?message=…`, more attempts in `GET deliveries/{id}`. A
        publish key, and a read key limited to a publisher, read the publisher's messages, with
        outcomes and status codes, but without `reason`, `error` and `excerpt`.
        """
        callbacks = Prefetch("callbacks", _shown_callbacks(), to_attr="shown_callbacks")
        rows = self.get_queryset().select_related("answers", "replied")
        rows = rows.prefetch_related(callbacks)
        message = self._found(id, rows)
        deliveries = _shown_deliveries(message)
        is_whole = len(deliveries) < SHOWN_DELIVERIES
        context = {
            "for_publisher": reach_of_key(key_of_request(request)) is not None,
            "deliveries": deliveries,
            "replies": _shown_replies(message),
            "delivery_count": len(deliveries)
            if is_whole
            else Delivery.objects.of_message(message.pk).count(),
        }
        return Response(MessageDetailSerializer(message, context=context).data)

    @extend_schema(responses=ExplanationsSerializer)
    def explain(self, request: Request, id: str) -> Response:
        """Explain for every subscription of the event type whether it qualifies for the message."""
        explanations = explain_message(self._found(id, self.get_queryset()))
        return Response({"results": ExplanationSerializer(explanations, many=True).data})

    def _found(self, text: str, rows: QuerySet[Message]) -> Message:
        # The URL pattern allows only ids.
        message = rows.filter(pk=parse_public_id(text) or 0).first()
        if message is None:
            raise Http404
        return message


def _shown_deliveries(message: Message) -> list[Delivery]:
    attempts = Prefetch("history", Attempt.objects.newest(SHOWN_ATTEMPTS))
    rows = Delivery.objects.of_message(message.pk)
    rows = rows.select_related(*DELIVERY_RELATIONS).prefetch_related(attempts)
    rows = rows.defer("subscription__headers", "subscription__auth").order_by("id")
    deliveries = list(rows[:SHOWN_DELIVERIES])
    for delivery in deliveries:
        delivery.message = message
    return deliveries


def _shown_callbacks() -> QuerySet[Callback]:
    return Callback.objects.order_by("queue_group")[:SHOWN_CALLBACKS]


def _shown_replies(message: Message) -> list[Reply]:
    """Return the first replies; query the database only for messages with any."""
    if not may_be_replied_to(message.headers, event=message.event_type.name):
        return []
    return list(Reply.objects.filter(message=message).order_by("delivery_id")[:SHOWN_REPLIES])


def _counts(page: "list[Message]") -> dict[int, dict[str, int]]:
    counts: dict[int, dict[str, int]] = {}
    rows = (
        Delivery.objects.of_messages(message.pk for message in page)
        .order_by()
        .values_list("message_id", "status")
        .annotate(count=Count("id"))
    )
    for message_id, status, count in rows:
        counts.setdefault(message_id, {})[status] = count
    return counts
