"""Retention: the passes with their progress, and the start of a new pass."""

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of
from delivery.api.base.pages import ById, KeysetPages, PageOrder
from delivery.api.base.strict import Strict
from delivery.api.base.views import MANAGE, READ, ApiView
from delivery.incoming.problems import Problem
from delivery.maintenance import retention
from delivery.models import RetentionRun, RetentionState


class RetentionRunSerializer(serializers.ModelSerializer[RetentionRun]):
    """A pass. `messages`, `deliveries` and `attempts` count the rows removed so far.

    `kept_because` says which files of the archive it did not find: their messages stay.
    """

    state = serializers.ChoiceField(choices=RetentionState.choices)
    share = serializers.FloatField(help_text="How much of its way is done, from 0 to 1.")

    class Meta:
        model = RetentionRun
        fields = [
            "id",
            "state",
            "share",
            "messages",
            "deliveries",
            "attempts",
            "kept_because",
            "started_at",
            "ended_at",
        ]


class RetentionViews(ApiView, GenericViewSet[RetentionRun]):
    order = PageOrder(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes = {"list": ById}
    queryset = RetentionRun.objects.all()
    serializer_class = RetentionRunSerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return MANAGE if self.action == "create" else READ

    def list(self, request: Request) -> Response:
        """List passes, newest first. Passes without removals are kept for a week."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(RetentionRunSerializer(page, many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        """Read a pass, with the progress."""
        run = get_object_or_404(self.get_queryset(), pk=pk)
        return Response(RetentionRunSerializer(run).data)

    @extend_schema(request=None, responses={201: RetentionRunSerializer})
    def create(self, request: Request) -> Response:
        """Start a pass now, instead of an hour after the last; it runs in the background.

        409 while a pass is running.
        """
        Strict(data=request.data).is_valid(raise_exception=True)
        try:
            run = retention.start_pass(actor=actor_of(request), now=timezone.now())
        except retention.AlreadyRunningError as error:
            detail = f"{error} Follow it at retention-runs/{error.run.pk}."
            raise Problem(409, "running", detail) from None
        return Response(RetentionRunSerializer(run).data, status=201)
