"""Bulk jobs: resubmit or cancel many deliveries by a filter, after a count, with progress."""

from collections.abc import Mapping
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of
from delivery.api.base.pages import ById, KeysetPages, PageOrder
from delivery.api.base.strict import Strict
from delivery.api.base.views import MANAGE, READ, ApiView
from delivery.api.resubmission_shapes import (
    CancellationSerializer,
    NewCancellationSerializer,
    NewResubmissionSerializer,
    PreviewSerializer,
    ResubmissionSerializer,
)
from delivery.incoming.problems import Problem
from delivery.models import BulkVerb, Resubmission
from delivery.support import bulk_jobs
from delivery.support.selection import COUNT_LIMIT, preview_selection


class ResubmissionViews(ApiView, GenericViewSet[Resubmission]):
    verb = BulkVerb.RESUBMIT
    request_class: type[NewResubmissionSerializer] = NewResubmissionSerializer
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
        """Read a resubmission, with the progress."""
        return self._shown()

    @extend_schema(
        request=NewResubmissionSerializer,
        responses={200: PreviewSerializer, 201: ResubmissionSerializer},
    )
    def create(self, request: Request) -> Response:
        """Resubmit many settled deliveries, oldest first; with `dry_run` only count them.

        The job selects the deliveries that match the filter now, and processes each once in the
        background. Deliveries that can no longer be resubmitted at their turn count as done, too.
        """
        return self._made(request)

    @extend_schema(request=None, responses=ResubmissionSerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel it; resubmitted deliveries stay so. 409 when it has ended."""
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
    request_class = NewCancellationSerializer
    queryset = Resubmission.objects.filter(verb=BulkVerb.CANCEL)
    serializer_class = CancellationSerializer

    def list(self, request: Request) -> Response:
        """List cancellations, newest first."""
        return super().list(request)

    @extend_schema(
        request=NewCancellationSerializer,
        responses={200: PreviewSerializer, 201: CancellationSerializer},
    )
    def create(self, request: Request) -> Response:
        """Cancel many unsettled deliveries, oldest first; with `dry_run` only count them.

        The job selects the deliveries that exist and match the filter now, and processes them in
        the background. A delivery already settled at its turn counts as done, and stays as it is. A
        delivery being sent at this moment is not sent again. IN_DOUBT deliveries are cancelled only
        if the filter has this status.
        """
        return self._made(request)

    @extend_schema(request=None, responses=CancellationSerializer)
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel it; cancelled deliveries stay so. 409 when it has ended."""
        return super().cancel(request, pk)


def _needed(job: Resubmission) -> Problem:
    return Problem(
        409,
        "backlog",
        (
            f"The subscription {job.filter['subscription']} was made ACTIVE on condition that this "
            "ends. To keep its next messages back, set it HELD."
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
