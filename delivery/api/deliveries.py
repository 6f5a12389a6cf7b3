"""Deliveries: list, read with attempts, cancel, resubmit, and resolve IN_DOUBT."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of, key_of_request
from delivery.api.base.pages import ById, KeysetPages, PageOrder
from delivery.api.base.strict import Moment, Strict, Text
from delivery.api.base.views import MANAGE, PUBLISH, READ, ApiView
from delivery.api.edits import EditSerializer, edit_of
from delivery.api.message_query import (
    TEXT_SEARCH_SECONDS,
    MessageIdField,
)
from delivery.api.shapes import (
    DELIVERY_RELATIONS,
    DeliveryDetailSerializer,
    DeliverySerializer,
    leave_out_receivers,
)
from delivery.database.queries import TimeUpError, statement_time_limit
from delivery.incoming.drafting import problem_of_refusal
from delivery.incoming.problems import Problem, invalid_field
from delivery.models import Attempt, Delivery
from delivery.models.delivery import PLACE_BITS, ids_of_message
from delivery.models.message import public_id
from delivery.models.published import id_limit, lowest_id
from delivery.models.reach import deliveries_within
from delivery.publishing.callback_urls import CallbackRefusedError
from delivery.publishing.drafts import PublishRefusedError
from delivery.states import Status
from delivery.support import resolve, resubmit
from subscriptions.matching.typed_names import (
    LONGEST_SUBSCRIPTION,
    UnknownNameError,
    subscription_ids,
)
from subscriptions.reach import Reach, reach_of_key
from subscriptions.values.names import MAX_NAME_LENGTH

# Only the newest are shown: a delivery may have been tried for weeks.
SHOWN_ATTEMPTS = 200


class DeliveryQuery(ById):
    """The query parameters of the list of deliveries."""

    status = serializers.ChoiceField(choices=Status.choices, required=False)
    subscriber = Text(required=False, max_length=MAX_NAME_LENGTH)
    subscription = Text(
        required=False,
        max_length=LONGEST_SUBSCRIPTION,
        help_text="An id, a name, or subscriber/subscription.",
    )
    message = MessageIdField(required=False, help_text="msg_…")
    since = Moment(required=False, help_text="Of messages published at this time or later.")
    until = Moment(required=False, help_text="Of messages published before this time.")


_LOOKUPS = {
    "status": "status",
    "subscriber": "subscription__subscriber__name",
    "since": "message__published_at__gte",
    "until": "message__published_at__lt",
}


class CopySerializer(serializers.Serializer[Any]):
    """The published edited message, with the delivery."""

    id = serializers.CharField(help_text="msg_…")
    deliveries = serializers.IntegerField(help_text="1: it goes to no other subscription.")
    delivery = serializers.IntegerField(help_text="The id of that delivery.")
    edited_from = serializers.CharField(help_text="msg_…")


class DeliveryViews(ApiView, GenericViewSet[Delivery]):
    order = PageOrder(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": DeliveryQuery}
    queryset = Delivery.objects.select_related("message__event_type", *DELIVERY_RELATIONS).defer(
        "message__body", "message__headers", "subscription__headers", "subscription__auth"
    )
    serializer_class = DeliverySerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return READ | PUBLISH if self.action in ("list", "retrieve") else MANAGE

    limited_actions = frozenset({"list", "retrieve"})

    def get_queryset(self) -> QuerySet[Delivery]:
        return deliveries_within(super().get_queryset(), self._reach)

    @property
    def _reach(self) -> Reach | None:
        return reach_of_key(key_of_request(self.request))

    def list(self, request: Request) -> Response:
        """List deliveries, newest first.

        A publish key, and a limited read key, list those of their publisher or subscriber. 400 if
        these are so few that a search takes too long: narrow it by message, since or until.
        """
        rows = _selected(self.get_queryset(), self.query, reach=self._reach)
        page = self.paginate_queryset(rows) if self._reach is None else self._within_time(rows)
        return self.get_paginated_response(self._seen(DeliverySerializer(page, many=True).data))

    @extend_schema(responses=DeliveryDetailSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Read a delivery with the newest 200 attempts.

        `attempt_count` is the number of all of them. For the publisher `reason`, `error` and
        `excerpt` are empty.
        """
        return self._shown()

    @extend_schema(request=None, responses=DeliveryDetailSerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """Settle an open or IN_DOUBT delivery as CANCELLED: it is not sent or handed out again.

        409 when it has another status.
        """
        return self._resolved(resolve.cancel_delivery, code="not-pending")

    @extend_schema(request=None, responses=DeliveryDetailSerializer)
    def mark_delivered(self, request: Request, pk: str) -> Response:
        """Settle an IN_DOUBT delivery as DELIVERED: the endpoint has received it.

        409 when it is not IN_DOUBT.
        """
        return self._resolved(resolve.mark_delivered, code="not-in-doubt")

    @extend_schema(
        request=EditSerializer, responses={200: DeliveryDetailSerializer, 202: CopySerializer}
    )
    def resubmit(self, request: Request, pk: str) -> Response:
        """Resubmit a settled delivery; with a body, publish an edited copy to its subscription.

        Without a body, or with `{}`: the same delivery at the old place in the lane, marked as
        resubmitted, with a new budget of attempts. 409 for a delivery that was received, is open,
        or was answered to a waiting publisher (SYNC), and for a QUEUE delivery whose group has a
        DELIVERED delivery.

        Edited: a new message, which refers to the original; no other subscription gets it, and for
        a QUEUE event type no other endpoint of the group. The delivery stays as it is; 409 while it
        is open.
        """
        delivery = self.get_object()
        edit = edit_of(request._request, delivery)
        try:
            if edit is None:
                resubmit.resubmit_delivery(delivery.pk, actor=actor_of(request))
                return self._shown()
            copy = resubmit.resubmit_edited(delivery, edit, actor=actor_of(request))
        except resubmit.NotResubmittedError as error:
            raise Problem(409, "not-resubmittable", str(error)) from None
        except PublishRefusedError as refused:
            raise problem_of_refusal(refused) from None
        except CallbackRefusedError as refused:
            raise Problem(400, "callback-refused", refused.detail) from None
        return Response(_copy(copy, delivery), status=202)

    def _resolved(self, verb: Callable[..., None], *, code: str) -> Response:
        Strict(data=self.request.data).is_valid(raise_exception=True)
        try:
            verb(self.get_object().pk, actor=actor_of(self.request))
        except resolve.NotResolvedError as error:
            raise Problem(409, code, str(error)) from None
        return self._shown()

    def _shown(self) -> Response:
        attempts = Prefetch("history", Attempt.objects.newest(SHOWN_ATTEMPTS))
        delivery = get_object_or_404(
            self.get_queryset().prefetch_related(attempts), pk=self.kwargs["pk"]
        )
        (shown,) = self._seen([DeliveryDetailSerializer(delivery).data])
        return Response(shown)

    def _within_time(self, rows: QuerySet[Delivery]) -> Sequence[Delivery]:
        try:
            with statement_time_limit(TEXT_SEARCH_SECONDS):
                return self.paginate_queryset(rows) or ()
        except TimeUpError:
            raise Problem(
                400,
                "search-too-wide",
                "The search took too long; narrow it by message, or by since and until.",
            ) from None

    def _seen(self, shown: Iterable[Any]) -> Sequence[dict[str, Any]]:
        """Leave out the details of receivers and people, unless the receiver's own key asks."""
        deliveries = [dict(delivery) for delivery in shown]
        if self._reach is not None and not self._reach.subscribers:
            leave_out_receivers(deliveries)
        return deliveries


def _copy(copy: resubmit.Copy, delivery: Delivery) -> dict[str, Any]:
    return {
        "id": public_id(copy.message_id),
        "deliveries": 1,
        "delivery": copy.delivery_id,
        "edited_from": public_id(delivery.message_id),
    }


def _selected(
    rows: QuerySet[Delivery], query: Mapping[str, Any], *, reach: Reach | None
) -> QuerySet[Delivery]:
    rows = rows.filter(
        **{lookup: query[name] for name, lookup in _LOOKUPS.items() if name in query}
    )
    # Repeated for deliveries, because the planner does not derive it.
    if "since" in query:
        rows = rows.filter(pk__gte=lowest_id(query["since"]) * 2**PLACE_BITS)
    if "until" in query:
        rows = rows.filter(pk__lt=id_limit(query["until"]) * 2**PLACE_BITS)
    if "message" in query:
        rows = rows.filter(pk__range=ids_of_message(query["message"]))
    if "subscription" in query:
        try:
            ids = subscription_ids(query["subscription"], reach=reach)
        except UnknownNameError as error:
            raise invalid_field("subscription", error.detail) from None
        rows = rows.filter(subscription__in=ids)
    return rows
