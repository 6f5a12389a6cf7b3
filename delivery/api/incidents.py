"""Incidents: faults that exist now, and the actions of people who work on them."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of, key_of_request
from delivery.api.base.pages import ById, KeysetPages, PageOrder
from delivery.api.base.strict import Moment, Strict, Text
from delivery.api.base.views import MANAGE, READ, ApiView
from delivery.api.resubmission_shapes import ResubmissionSerializer
from delivery.incidents import actions
from delivery.incoming.problems import Problem
from delivery.models import Incident, IncidentKind, IncidentSeverity, IncidentState
from delivery.models.delivery import PLACE_BITS
from delivery.models.message import public_id
from subscriptions.models import Scope
from subscriptions.values.shown_addresses import masked_address, secret_address_key

_SHOWN_STATES = [IncidentState.OPEN.value, IncidentState.CLOSED.value]


class IncidentSerializer(serializers.ModelSerializer[Incident]):
    """An incident. `subject` and `cause` are those of the last announcement."""

    kind = serializers.ChoiceField(choices=IncidentKind.choices)
    state = serializers.ChoiceField(choices=_SHOWN_STATES)
    severity = serializers.ChoiceField(choices=IncidentSeverity.choices)
    message = serializers.SerializerMethodField(
        help_text="The head, or the last message that failed: msg_…; null without one."
    )
    delivery = serializers.IntegerField(source="delivery_id", allow_null=True)
    subscription = serializers.IntegerField(source="subscription_id", allow_null=True)
    waiting = serializers.IntegerField(
        allow_null=True, help_text="The most deliveries that waited at an announcement."
    )
    since = serializers.DateTimeField(source="first_at")
    url = serializers.SerializerMethodField(
        help_text="For a read key its query and long parts of its path are masked."
    )
    url_key = serializers.SerializerMethodField(
        help_text="Names the URL where it is masked: `url-health/release` takes it. Empty: no URL."
    )

    class Meta:
        model = Incident
        fields = [
            "id",
            "kind",
            "state",
            "severity",
            "subject",
            "cause",
            "subscription",
            "url",
            "url_key",
            "message",
            "delivery",
            "count",
            "waiting",
            "since",
            "opened_at",
            "closed_at",
            "closed_by",
            "acknowledged_at",
            "acknowledged_by",
            "assignee",
            "muted_until",
        ]

    def get_url(self, incident: Incident) -> str:
        is_whole = key_of_request(self.context["request"]).scope == Scope.MANAGE
        return incident.url if is_whole else masked_address(incident.url)

    def get_url_key(self, incident: Incident) -> str:
        return secret_address_key(incident.url) if incident.url else ""

    def get_message(self, incident: Incident) -> str | None:
        if incident.delivery_id is None:
            return None
        return public_id(incident.delivery_id >> PLACE_BITS)


class IncidentQuery(ById):
    """The query parameters of the list of incidents."""

    state = serializers.ChoiceField(choices=_SHOWN_STATES, required=False)
    kind = serializers.ChoiceField(choices=IncidentKind.choices, required=False)


class MuteSerializer(Strict):
    """Until when to send neither mail nor chat."""

    until = Moment(allow_null=True, help_text="null: not muted any more.")


class AssignSerializer(Strict):
    """Who works on it."""

    assignee = Text(max_length=150, allow_blank=True, help_text="A name; empty: nobody.")


class IncidentViews(ApiView, GenericViewSet[Incident]):
    order = PageOrder(column="id", newest_first=True)
    pagination_class = KeysetPages
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": IncidentQuery}
    queryset = Incident.objects.exclude(state=IncidentState.WATCHED)
    serializer_class = IncidentSerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return READ if self.action in ("list", "retrieve") else MANAGE

    def list(self, request: Request) -> Response:
        """List incidents, newest first."""
        wanted = {name: self.query[name] for name in ("state", "kind") if name in self.query}
        page = self.paginate_queryset(self.get_queryset().filter(**wanted))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        """Read an incident."""
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=None, responses=IncidentSerializer)
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Record that you work on the incident. 409 when it is closed, or somebody does already."""
        return self._acted(request, actions.acknowledge_incident)

    @extend_schema(request=MuteSerializer, responses=IncidentSerializer)
    def mute(self, request: Request, pk: str) -> Response:
        """Stop mail and chat about the cause until then. 409 if it is closed, or the time past."""
        serializer = MuteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return self._acted(request, actions.mute_incident, until=serializer.validated_data["until"])

    @extend_schema(request=AssignSerializer, responses=IncidentSerializer)
    def assign(self, request: Request, pk: str) -> Response:
        """Assign it. 409 when it is closed."""
        serializer = AssignSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        name = serializer.validated_data["assignee"]
        return self._acted(request, actions.assign_incident, assignee=name)

    @extend_schema(request=None, responses=IncidentSerializer)
    def close(self, request: Request, pk: str) -> Response:
        """Close an incident of failed deliveries. 409 for others, which close by themselves."""
        return self._acted(request, actions.close_incident)

    @extend_schema(request=None, responses={201: ResubmissionSerializer})
    def resubmit(self, request: Request, pk: str) -> Response:
        """Resubmit the incident's deliveries that are still failures. 409 when there is none."""
        Strict(data=request.data).is_valid(raise_exception=True)
        incident = self.get_object()
        try:
            job = actions.resubmit_failures(incident.pk, rate=None, actor=actor_of(request))
        except actions.IncidentError as error:
            raise _refused(error) from None
        return Response(ResubmissionSerializer(job).data, status=201)

    def _acted(self, request: Request, act: Callable[..., Incident], **options: Any) -> Response:
        if not options:
            Strict(data=request.data).is_valid(raise_exception=True)
        incident = get_object_or_404(self.get_queryset(), pk=self.kwargs["pk"])
        try:
            act(incident.pk, actor=actor_of(request), now=timezone.now(), **options)
        except actions.IncidentError as error:
            raise _refused(error) from None
        return Response(self.get_serializer(self.get_object()).data)


def _refused(error: actions.IncidentError) -> Problem:
    return Problem(409, "not-possible", str(error))
