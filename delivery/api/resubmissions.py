"""Resubmissions: many deliveries sent again by a filter, counted before, with progress."""

from collections.abc import Mapping
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery import resubmission
from delivery.api.message_query import MessageIdField
from delivery.lifecycle import RESUBMITTABLE
from delivery.models import Resubmission, ResubmissionState
from delivery.models.message import public_id
from delivery.resubmission import COUNT_LIMIT, FASTEST_RATE, SLOWEST_RATE
from subscriptions.api.authentication import actor_of
from subscriptions.api.pages import ById, KeysetPages, Order
from subscriptions.api.problems import Problem
from subscriptions.api.strict import Strict, Switch, Text
from subscriptions.api.views import MANAGE, READ, ApiView
from subscriptions.names import MAX_NAME_LENGTH

_STATUSES = [status.value for status in RESUBMITTABLE]


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": _STATUSES},
            {"type": "array", "items": {"type": "string", "enum": _STATUSES}, "minItems": 1},
        ]
    }
)
class Statuses(serializers.Field[Any, Any, Any, Any]):
    """One status or a list of them."""

    def to_internal_value(self, data: Any) -> list[str]:
        given = data if isinstance(data, list) else [data]
        wrong = [one for one in given if one not in _STATUSES]
        if wrong or not given:
            raise serializers.ValidationError(
                f"Give one or more of {', '.join(_STATUSES)}; what was received is not sent again."
            )
        return list(dict.fromkeys(given))

    def to_representation(self, value: Any) -> Any:
        return value


class FilterSerializer(Strict):
    """What is selected of all that may be sent again; at least one of these."""

    status = Statuses(required=False)
    subscriber = Text(required=False, max_length=MAX_NAME_LENGTH)
    subscription = Text(required=False, max_length=MAX_NAME_LENGTH, help_text="An id (as text), or a name.")
    event_type = Text(required=False, max_length=MAX_NAME_LENGTH)
    message = MessageIdField(required=False, help_text="msg_…")
    since = serializers.DateTimeField(
        required=False, help_text="Of messages published at this time or later."
    )
    until = serializers.DateTimeField(required=False, help_text="Of messages published before this time.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError("Give at least one of the fields; all at once is too much.")
        moments = {
            name: attrs[name].isoformat().replace("+00:00", "Z")
            for name in ("since", "until")
            if name in attrs
        }
        return attrs | moments

    def to_representation(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        shown = {"message": public_id(instance["message"])} if "message" in instance else {}
        return dict(instance) | shown


class Rate(serializers.FloatField):
    """A JSON number: no "5", no true."""

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return super().to_internal_value(data)


class WishSerializer(Strict):
    """Which deliveries to send again, and how fast."""

    filter = FilterSerializer()
    dry_run = Switch(default=False, help_text="true: only count them.")
    rate = Rate(
        required=False,
        allow_null=True,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        help_text="Deliveries a second; null: as fast as it goes.",
    )


class PreviewSerializer(serializers.Serializer[Any]):
    """What `dry_run` answers; nothing is stored."""

    id = serializers.IntegerField(allow_null=True, help_text="null: there is no resubmission.")
    count = serializers.IntegerField()
    more = serializers.BooleanField(help_text=f"There are more: counting ends at {COUNT_LIMIT:,}.")
    state = serializers.CharField(allow_null=True, help_text="null")
    done = serializers.IntegerField()
    sample = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of the oldest.")


class ResubmissionSerializer(serializers.ModelSerializer[Resubmission]):
    """A resubmission. `done` were gone through so far; of these `resubmitted` could be sent again."""

    filter = FilterSerializer()
    state = serializers.ChoiceField(choices=ResubmissionState.choices)
    count = serializers.SerializerMethodField(help_text="How many it selected when it was made.")
    more = serializers.SerializerMethodField(help_text="It selected more than `count`: counting ended there.")

    class Meta:
        model = Resubmission
        fields = [
            "id",
            "filter",
            "rate",
            "count",
            "more",
            "state",
            "done",
            "resubmitted",
            "actor",
            "created_at",
            "ended_at",
        ]

    def get_count(self, job: Resubmission) -> int:
        return min(job.count, COUNT_LIMIT)

    def get_more(self, job: Resubmission) -> bool:
        return job.count > COUNT_LIMIT


class ResubmissionViews(ApiView, GenericViewSet[Resubmission]):
    order = Order(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes = {"list": ById}
    queryset = Resubmission.objects.all()
    serializer_class = ResubmissionSerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return READ if self.action in ("list", "retrieve") else MANAGE

    def list(self, request: Request) -> Response:
        """List resubmissions, the newest first."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(ResubmissionSerializer(page, many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        """Read one, with its progress."""
        return self._shown()

    @extend_schema(request=WishSerializer, responses={200: PreviewSerializer, 201: ResubmissionSerializer})
    def create(self, request: Request) -> Response:
        """Have many settled deliveries sent again, the oldest first; with `dry_run` only count them.

        Selected is what the filter fits now; it is worked off in the background, each delivery once. Those
        that cannot be sent again when their turn comes are gone through all the same.
        """
        wish = WishSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        chosen = wish.validated_data["filter"]
        if wish.validated_data["dry_run"]:
            return Response(_previewed(chosen))
        job = resubmission.start(chosen, rate=wish.validated_data.get("rate"), actor=actor_of(request))
        return Response(ResubmissionSerializer(job).data, status=201)

    @extend_schema(request=None, responses=ResubmissionSerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """End it; what was sent again stays so. 409 when it has ended."""
        Strict(data=request.data).is_valid(raise_exception=True)
        job = self.get_object()
        if not resubmission.cancel(job, actor=actor_of(request), now=timezone.now()):
            raise Problem(409, "ended", f"It is {job.state}; only a RUNNING one can be cancelled.")
        return self._shown()

    def _shown(self) -> Response:
        job = get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"])
        return Response(ResubmissionSerializer(job).data)


def _previewed(chosen: Mapping[str, Any]) -> dict[str, Any]:
    found = resubmission.preview(chosen)
    return {
        "id": None,
        "count": min(found.count, COUNT_LIMIT),
        "more": found.count > COUNT_LIMIT,
        "state": None,
        "done": 0,
        "sample": found.sample,
    }
