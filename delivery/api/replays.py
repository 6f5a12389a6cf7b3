"""Replays: archived messages delivered to a subscription in order, after a count, with progress."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of
from delivery.api.base.pages import ById, KeysetPages, PageOrder
from delivery.api.base.strict import Moment, Number, Strict, Text, WholeNumber
from delivery.api.base.views import MANAGE, READ, ApiView
from delivery.incoming.problems import Problem, invalid_fields
from delivery.models import Replay, ReplayState
from delivery.support.bulk_jobs import FASTEST_RATE, SLOWEST_RATE
from delivery.support.replays import replays
from delivery.support.replays.replays import ReplayRefusedError
from subscriptions.models import Subscription
from subscriptions.values.names import MAX_NAME_LENGTH


class NewReplaySerializer(Strict):
    """Which messages to deliver to which subscription, and how fast.

    A field that is omitted or null has the subscription's value; an empty text is no condition.
    """

    subscription = WholeNumber(help_text="The id of the subscription.")
    since = Moment(help_text="Messages published at this time or later.")
    until = Moment(
        required=False,
        allow_null=True,
        help_text="Messages published before this time; null: all that is archived.",
    )
    filter = Text(required=False, allow_null=True, allow_blank=True)
    header_filter_string = Text(required=False, allow_null=True, allow_blank=True, max_length=1000)
    event_types = serializers.ListField(
        child=Text(max_length=MAX_NAME_LENGTH), required=False, allow_null=True, max_length=1000
    )
    rate = Number(
        required=False,
        allow_null=True,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        help_text="Deliveries per second; null: as fast as possible.",
    )


class PreviewedSerializer(serializers.Serializer[Any]):
    """The number of messages of an event type, published on a day (UTC)."""

    event = serializers.CharField()
    day = serializers.DateField()
    count = serializers.IntegerField()


class ReplaySerializer(serializers.ModelSerializer[Replay]):
    """A replay. `done` of `count` messages are processed so far; `made` of them became deliveries.

    `preview` is the selection, once it is READY. `error` is the reason why it FAILED, or why a
    RUNNING replay pauses.
    """

    subscription = serializers.IntegerField(source="subscription_id")
    subscription_name = serializers.CharField(source="subscription.name")
    subscriber = serializers.CharField(source="subscription.subscriber.name")
    state = serializers.ChoiceField(choices=ReplayState.choices)
    event_types = serializers.ListField(child=serializers.CharField())
    preview = PreviewedSerializer(many=True)

    class Meta:
        model = Replay
        fields = [
            "id",
            "state",
            "subscription",
            "subscription_name",
            "subscriber",
            "since",
            "until",
            "event_types",
            "filter",
            "header_filter_string",
            "rate",
            "count",
            "done",
            "made",
            "preview",
            "error",
            "asked_by",
            "asked_at",
            "ended_at",
        ]


class ReplayViews(ApiView, GenericViewSet[Replay]):
    order = PageOrder(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes = {"list": ById}
    queryset = Replay.objects.select_related("subscription__subscriber")
    serializer_class = ReplaySerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return READ if self.action in ("list", "retrieve") else MANAGE

    def list(self, request: Request) -> Response:
        """List replays, newest first."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(ReplaySerializer(page, many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        """Read a replay, with preview and progress."""
        return self._shown(self.get_object())

    @extend_schema(request=NewReplaySerializer, responses={201: ReplaySerializer})
    def create(self, request: Request) -> Response:
        """Select the messages of a replay from the archive.

        It is SELECTING, and READY when they are counted. Nothing is delivered before it is started.
        It selects the messages that match the filter, whether or not the subscription existed when
        they were published.
        """
        serializer = NewReplaySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        subscription = _subscription(fields.pop("subscription"))
        try:
            made = replays.request_replay(
                subscription, actor=actor_of(request), now=timezone.now(), **fields
            )
        except ReplayRefusedError as refused:
            raise _problem(refused) from None
        return Response(ReplaySerializer(made).data, status=201)

    @extend_schema(request=None, responses=ReplaySerializer)
    def start(self, request: Request, pk: str) -> Response:
        """Create the deliveries, in the order of publication and at the replay's rate.

        409 when it is not READY.
        """
        Strict(data=request.data).is_valid(raise_exception=True)
        replay = self.get_object()
        if not replays.start_replay(replay, actor=actor_of(request), now=timezone.now()):
            raise Problem(409, "not-ready", _why_not_started(replay))
        return self._shown(replay)

    @extend_schema(request=None, responses=ReplaySerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel it; the created deliveries stay, and are sent. 409 when it has ended."""
        Strict(data=request.data).is_valid(raise_exception=True)
        replay = self.get_object()
        if not replays.cancel_replay(replay, actor=actor_of(request), now=timezone.now()):
            raise Problem(409, "ended", f"It is {replay.state}; there is nothing left to cancel.")
        return self._shown(replay)

    def _shown(self, replay: Replay) -> Response:
        return Response(ReplaySerializer(get_object_or_404(self.get_queryset(), pk=replay.pk)).data)


def _subscription(id: int) -> Subscription:
    rows = Subscription.objects.select_related("subscriber", "event_type")
    subscription = rows.filter(pk=id).first() if 0 < id < 2**63 else None
    if subscription is None:
        detail = f"There is no subscription {id}; GET subscriptions lists those there are."
        raise invalid_fields([{"field": "subscription", "detail": detail}])
    return subscription


def _problem(refused: ReplayRefusedError) -> Problem:
    place = {} if refused.line is None else {"line": refused.line, "column": refused.column}
    return invalid_fields([{"field": refused.field, "detail": refused.detail, **place}])


def _why_not_started(replay: Replay) -> str:
    if replay.state == ReplayState.SELECTING:
        return "It is SELECTING: its messages are not counted yet. Start it when it is READY."
    return f"It is {replay.state}; only a READY one can be started."
