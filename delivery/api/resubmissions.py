"""Bulk jobs: resubmit or cancel many deliveries by a filter, after a count, with progress."""

from collections.abc import Mapping
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.message_query import MessageIdField
from delivery.models import BulkVerb, Resubmission, ResubmissionState
from delivery.models.message import public_id
from delivery.support import bulk_jobs
from delivery.support.bulk_jobs import FASTEST_RATE, SLOWEST_RATE
from delivery.support.selection import COUNT_LIMIT, OFFERED, preview_selection
from subscriptions.api.authentication import actor_of
from subscriptions.api.pages import ById, KeysetPages, PageOrder
from subscriptions.api.problems import Problem
from subscriptions.api.strict import Strict, Switch, Text
from subscriptions.api.views import MANAGE, READ, ApiView
from subscriptions.values.names import MAX_NAME_LENGTH


def _one_or_more(verb: BulkVerb) -> dict[str, Any]:
    one = {"type": "string", "enum": [status.value for status in OFFERED[verb]]}
    return {"oneOf": [one, {"type": "array", "items": one, "minItems": 1}]}


class Statuses(serializers.Field[Any, Any, Any, Any]):
    """One status or a list of them, out of those that the verb applies to."""

    verb: BulkVerb
    others: str

    def to_internal_value(self, data: Any) -> list[str]:
        offered = [status.value for status in OFFERED[self.verb]]
        items = data if isinstance(data, list) else [data]
        if not items or any(one not in offered for one in items):
            raise serializers.ValidationError(
                f"Give one or more of {', '.join(offered)}; {self.others}."
            )
        return list(dict.fromkeys(items))

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(_one_or_more(BulkVerb.RESUBMIT))
class SettledStatuses(Statuses):
    verb = BulkVerb.RESUBMIT
    others = "received deliveries cannot be resubmitted"


@extend_schema_field(_one_or_more(BulkVerb.CANCEL))
class UnsettledStatuses(Statuses):
    verb = BulkVerb.CANCEL
    others = "settled deliveries cannot be cancelled"


class FilterSerializer(Strict):
    """A filter of settled deliveries, with at least one field.

    Without a status: failed deliveries.
    """

    rules = {"minProperties": 1}
    status: Statuses = SettledStatuses(required=False)
    subscriber = Text(required=False, max_length=MAX_NAME_LENGTH)
    subscription = Text(
        required=False, max_length=MAX_NAME_LENGTH, help_text="An id (as text), or a name."
    )
    event_type = Text(required=False, max_length=MAX_NAME_LENGTH)
    message = MessageIdField(required=False, help_text="msg_…")
    since = serializers.DateTimeField(
        required=False, help_text="Of messages published at this time or later."
    )
    until = serializers.DateTimeField(
        required=False, help_text="Of messages published before this time."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(
                "Give at least one of the fields; all at once is too much."
            )
        moments = {
            name: attrs[name].isoformat().replace("+00:00", "Z")
            for name in ("since", "until")
            if name in attrs
        }
        return attrs | moments

    def to_representation(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        shown = {"message": public_id(instance["message"])} if "message" in instance else {}
        return dict(instance) | shown


class UnsettledFilterSerializer(FilterSerializer):
    """A filter of unsettled deliveries, with at least one field.

    Without a status: open deliveries.
    """

    status = UnsettledStatuses(required=False)


class Rate(serializers.FloatField):
    """A JSON number: neither "5" nor true."""

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return super().to_internal_value(data)


class WishSerializer(Strict):
    """Which deliveries to resubmit, and how fast."""

    filter = FilterSerializer()
    dry_run = Switch(default=False, help_text="true: only count them.")
    rate = Rate(
        required=False,
        allow_null=True,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        help_text="Deliveries per second; null: as fast as possible.",
    )


class CancellationWishSerializer(WishSerializer):
    """Which deliveries to cancel, and how fast."""

    filter = UnsettledFilterSerializer()


class PreviewSerializer(serializers.Serializer[Any]):
    """The answer to `dry_run`; nothing is stored."""

    id = serializers.IntegerField(allow_null=True, help_text="null: there is no resubmission.")
    count = serializers.IntegerField()
    statuses = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many of each status, the most frequent first.",
    )
    oldest_at = serializers.DateTimeField(
        allow_null=True, help_text="When the oldest was published."
    )
    more = serializers.BooleanField(help_text=f"There are more: counting ends at {COUNT_LIMIT:,}.")
    state = serializers.CharField(allow_null=True, help_text="null")
    done = serializers.IntegerField()
    sample = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of the oldest.")


_FIRST = ["id", "filter", "rate", "count", "more", "state", "done"]
_LAST = ["actor", "created_at", "ended_at"]


class ResubmissionSerializer(serializers.ModelSerializer[Resubmission]):
    """A resubmission.

    `done` deliveries are processed so far; `resubmitted` of them are sent again.
    """

    filter = FilterSerializer()
    state = serializers.ChoiceField(choices=ResubmissionState.choices)
    count = serializers.SerializerMethodField(
        help_text="Number of deliveries selected when it was created."
    )
    more = serializers.SerializerMethodField(
        help_text="It selected more than `count`: counting ended there."
    )
    resubmitted = serializers.IntegerField(source="changed")

    class Meta:
        model = Resubmission
        fields = [*_FIRST, "resubmitted", *_LAST]

    def get_count(self, job: Resubmission) -> int:
        return min(job.count, COUNT_LIMIT)

    def get_more(self, job: Resubmission) -> bool:
        return job.count > COUNT_LIMIT


class CancellationSerializer(ResubmissionSerializer):
    """A cancellation.

    `done` deliveries are processed so far; `cancelled` of them were cancelled.
    """

    filter = UnsettledFilterSerializer()
    resubmitted = None  # type: ignore[assignment]
    cancelled = serializers.IntegerField(source="changed")

    class Meta:
        model = Resubmission
        fields = [*_FIRST, "cancelled", *_LAST]


class ResubmissionViews(ApiView, GenericViewSet[Resubmission]):
    verb = BulkVerb.RESUBMIT
    request_class: type[WishSerializer] = WishSerializer
    order = PageOrder(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes = {"list": ById}
    queryset = Resubmission.objects.filter(verb=BulkVerb.RESUBMIT)
    serializer_class: type[ResubmissionSerializer] = ResubmissionSerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return READ if self.action in ("list", "retrieve") else MANAGE

    def list(self, request: Request) -> Response:
        """List resubmissions, newest first."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.serializer_class(page, many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        """Read a resubmission, with its progress."""
        return self._shown()

    @extend_schema(
        request=WishSerializer, responses={200: PreviewSerializer, 201: ResubmissionSerializer}
    )
    def create(self, request: Request) -> Response:
        """Resubmit many settled deliveries, oldest first; with `dry_run` only count them.

        The job selects the deliveries that match the filter now, and processes each once in the
        background. Deliveries that can no longer be resubmitted at their turn count as done, too.
        """
        return self._made(request)

    @extend_schema(request=None, responses=ResubmissionSerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel it; deliveries that were resubmitted stay so. 409 when it has ended."""
        Strict(data=request.data).is_valid(raise_exception=True)
        job = self.get_object()
        try:
            is_ended = bulk_jobs.cancel_job(job, actor=actor_of(request), now=timezone.now())
        except bulk_jobs.BacklogError:
            raise _needed(job) from None
        if not is_ended:
            raise Problem(409, "ended", f"It is {job.state}; only a RUNNING one can be cancelled.")
        return self._shown()

    def _made(self, request: Request) -> Response:
        serializer = self.request_class(data=request.data)
        serializer.is_valid(raise_exception=True)
        chosen = serializer.validated_data["filter"]
        if serializer.validated_data["dry_run"]:
            return Response(_previewed(chosen, self.verb))
        rate = serializer.validated_data.get("rate")
        job = bulk_jobs.start_job(chosen, rate=rate, actor=actor_of(request), verb=self.verb)
        return Response(self.serializer_class(job).data, status=201)

    def _shown(self) -> Response:
        job = get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"])
        return Response(self.serializer_class(job).data)


class CancellationViews(ResubmissionViews):
    verb = BulkVerb.CANCEL
    request_class = CancellationWishSerializer
    queryset = Resubmission.objects.filter(verb=BulkVerb.CANCEL)
    serializer_class = CancellationSerializer

    def list(self, request: Request) -> Response:
        """List cancellations, newest first."""
        return super().list(request)

    @extend_schema(
        request=CancellationWishSerializer,
        responses={200: PreviewSerializer, 201: CancellationSerializer},
    )
    def create(self, request: Request) -> Response:
        """Cancel many unsettled deliveries, oldest first; with `dry_run` only count them.

        The job selects the deliveries that exist and match the filter now, and processes them in
        the background. A delivery that is settled at its turn counts as done, and stays as it is. A
        delivery that is being sent at that moment is not sent again. IN_DOUBT ones are cancelled
        only if that status is given.
        """
        return self._made(request)

    @extend_schema(request=None, responses=CancellationSerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel it; deliveries that were cancelled stay so. 409 when it has ended."""
        return super().cancel(request, pk)


def _needed(job: Resubmission) -> Problem:
    return Problem(
        409,
        "backlog",
        (
            f"The subscription {job.filter['subscription']} was made ACTIVE on condition that this "
            "ends. To hold what is published for it from now on, make it INACTIVE."
        ),
    )


def _previewed(chosen: Mapping[str, Any], verb: BulkVerb) -> dict[str, Any]:
    preview = preview_selection(chosen, verb)
    return {
        "id": None,
        "count": min(preview.count, COUNT_LIMIT),
        "statuses": preview.statuses,
        "oldest_at": preview.oldest_at,
        "more": preview.count > COUNT_LIMIT,
        "state": None,
        "done": 0,
        "sample": preview.sample,
    }
