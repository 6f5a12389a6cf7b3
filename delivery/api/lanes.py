"""Lanes: their states, and support's actions on stopped lanes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import F, QuerySet
from django.db.models.lookups import Exact
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of, key_of_request
from delivery.api.base.pages import ById, KeysetPages, PageOrder
from delivery.api.base.strict import Strict
from delivery.api.base.views import MANAGE, READ, ApiView
from delivery.incoming.problems import Problem
from delivery.models import Lane, LaneKind
from delivery.models.reach import lanes_within
from delivery.standing import waiting_counts
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded
from delivery.states import LaneState
from delivery.support import unblock
from subscriptions.reach import reach_of_key


class LaneSerializer(serializers.ModelSerializer[Lane]):
    """A lane. `waiting` counts the PENDING deliveries of ACTIVE subscriptions, up to 10,000.

    BLOCKED: it tries again at `next_try_at`. For a CONCURRENT subscriber, BLOCKED means that
    endpoints are down (`endpoint_state` of the subscription is DOWN): the lane describes the
    endpoint that is down longest, and the others continue. SUSPENDED: nothing is sent; at
    `next_try_at` the subscription's probe URL is called again, and the lane resumes at the first
    2xx; null: only a person resumes it. With a `catch_up_rate` it sends at most so many deliveries
    per second until the held deliveries are sent.
    """

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=LaneState.choices, source="shown_state")
    delivery = serializers.IntegerField(
        source="delivery_id", allow_null=True, help_text="The one that stops it."
    )
    waiting = serializers.SerializerMethodField()
    is_at_least = serializers.BooleanField(
        required=False,
        help_text="true: more than `waiting` deliveries wait; counting ends at 10,000.",
    )

    class Meta:
        model = Lane
        fields = [
            "name",
            "state",
            "since",
            "reason",
            "delivery",
            "waiting",
            "is_at_least",
            "next_try_at",
            "catch_up_rate",
        ]

    def get_waiting(self, lane: Lane) -> int:
        return min(self._counted(lane), WAITING_LIMIT)

    def to_representation(self, instance: Lane) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        return shown | ({"is_at_least": True} if self._counted(instance) > WAITING_LIMIT else {})

    def _counted(self, lane: Lane) -> int:
        counted: dict[int, Bounded] = self.context["waiting"]
        return counted[lane.pk].found


class LaneQuery(ById):
    """The query parameters of the list of lanes."""

    state = serializers.ChoiceField(choices=LaneState.choices, required=False)


class LaneViews(ApiView, GenericViewSet[Lane]):
    order = PageOrder(column="id")
    pagination_class = KeysetPages
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": LaneQuery}
    queryset = Lane.objects.all()
    serializer_class = LaneSerializer
    lookup_field = "name"

    limited_actions = frozenset({"list", "retrieve"})

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return MANAGE if self.action in ("retry", "skip", "resume") else READ

    def get_queryset(self) -> QuerySet[Lane]:
        rows = Lane.objects.with_name().with_shown_state().defer("run_ids", "run_attempts")
        return lanes_within(rows, reach_of_key(key_of_request(self.request)))

    def list(self, request: Request) -> Response:
        """List the lanes."""
        rows = self.get_queryset()
        if "state" in self.query:
            rows = rows.filter(Exact(F("shown_state"), self.query["state"]))
        lanes = self.paginate_queryset(rows) or []
        shown = LaneSerializer(lanes, many=True, context=_waiting(lanes))
        return self.get_paginated_response(shown.data)

    def retrieve(self, request: Request, name: str) -> Response:
        """Read a lane."""
        return self._shown()

    @extend_schema(request=None, responses=LaneSerializer)
    def retry(self, request: Request, name: str) -> Response:
        """End the pause of a blocked lane: the blocking delivery is tried now.

        409 when it is not blocked, or suspended.
        """
        return self._changed(unblock.retry_head)

    @extend_schema(request=None, responses=LaneSerializer)
    def skip(self, request: Request, name: str) -> Response:
        """Cancel the delivery that stops the lane and continue with the next.

        409 when the lane is not stopped. A SUSPENDED lane is resumed as well.
        """
        return self._changed(unblock.skip_delivery)

    @extend_schema(request=None, responses=LaneSerializer)
    def resume(self, request: Request, name: str) -> Response:
        """Resume a SUSPENDED lane: the head delivery gets all attempts again.

        409 when it is not suspended.
        """
        return self._changed(unblock.resume_lane)

    def get_object(self) -> Lane:
        return get_object_or_404(self.get_queryset(), **_place(self.kwargs["name"]))

    def _changed(self, verb: Callable[..., Any]) -> Response:
        Strict(data=self.request.data).is_valid(raise_exception=True)
        lane = self.get_object()
        try:
            verb(lane, actor=actor_of(self.request))
        except (unblock.NotBlockedError, unblock.NotSuspendedError) as error:
            raise _problem(lane, error) from None
        return self._shown()

    def _shown(self) -> Response:
        lane = self.get_object()
        return Response(LaneSerializer(lane, context=_waiting([lane])).data)


def _problem(lane: Lane, error: Exception) -> Problem:
    match error:
        case unblock.SuspendedError():
            return Problem(
                409,
                "suspended",
                (
                    f"The lane {lane} is SUSPENDED and does not try by itself: "
                    f"POST lanes/{lane}/resume, or …/skip to cancel the delivery that suspended it."
                ),
            )
        case unblock.NotSuspendedError():
            return Problem(
                409,
                "not-suspended",
                f"The lane {lane} is not suspended; there is nothing to resume.",
            )
    return Problem(
        409, "not-blocked", f"The lane {lane} is not blocked; there is nothing to retry or skip."
    )


def _place(name: str) -> dict[str, Any]:
    """Return the look-up of a lane by the columns behind the name, which have an index."""
    kind, colon, number = name.partition(":")
    if not colon:
        return {"kind": LaneKind.TOPIC, "subscriber__name": name}
    return {"kind": kind.upper(), "number": int(number)}


def _waiting(lanes: Sequence[Lane]) -> dict[str, Any]:
    return {"waiting": waiting_counts.waiting_of_lanes([lane.pk for lane in lanes])}
