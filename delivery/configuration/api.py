"""The configuration by REST: read as a document, compared, planned and applied.

The request has the values of secrets, by their references. The server does not look them up in its
environment or files, because anybody with a key could read those in this way.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.urls import re_path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.authentication import actor_of
from delivery.api.base.patterns import ID
from delivery.api.base.strict import Strict
from delivery.api.base.views import ApiView
from delivery.configuration.applying import (
    apply_document,
    checked_document,
    drift_of,
    plan_document,
)
from delivery.configuration.archive_effect import request_effect
from delivery.configuration.document.apply import PlanChangedError
from delivery.configuration.document.document import RefusedDocumentError
from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.export import export_configuration
from delivery.configuration.document.plan import ConfigurationRequest, Plan, Verb
from delivery.configuration.document.secrets import lookup_of_mapping
from delivery.configuration.document.warnings import plan_warnings
from delivery.configuration.effect import Effects, effects_of
from delivery.configuration.shapes import (
    ApplyRequest,
    DocumentQuery,
    DriftAnswer,
    DriftRequest,
    EffectRunAnswer,
    EffectSerializer,
    PlanAnswer,
    PlanRequest,
)
from delivery.incoming.bodies import DocumentBody
from delivery.incoming.problems import Problem, invalid_field
from delivery.models import PipelineRun, Step
from delivery.pipeline import TooManyRunsError

# A run takes from seconds to minutes.
RETRY_AFTER_SECONDS = 60
_ETAG = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=True, description="The digest of the answer."
)


class DocumentView(ApiView):
    query_classes: ClassVar[dict[str, type[Strict]]] = {"get": DocumentQuery}

    @extend_schema(
        responses={200: OpenApiTypes.OBJECT, 304: None},
        operation_id="configuration_retrieve",
        parameters=[_ETAG],
    )
    def get(self, request: Request) -> Response:
        """Read the configuration as a document.

        With its ETag in If-None-Match, 304 while it is unchanged.
        """
        content = export_configuration(only=self.query.get("only", ()))
        tag = f'"{hashlib.sha256(document_text(content).encode()).hexdigest()}"'
        if request.headers.get("If-None-Match") == tag:
            return Response(status=304, headers={"ETag": tag})
        return Response(content, headers={"ETag": tag})


class DriftView(ApiView):
    parser_classes = [DocumentBody]

    @extend_schema(
        request=DriftRequest,
        responses=DriftAnswer,
        operation_id="configuration_drift",
    )
    def post(self, request: Request) -> Response:
        """Compare the installation with a document; nothing is changed.

        The answer has the changes that would make the installation equal to the document. It
        includes deletions that a plan refuses because other objects depend on the object. 400 with
        all faults, by object and field.
        """
        given = DriftRequest(data=request.data)
        given.is_valid(raise_exception=True)
        return Response(_changes(_plan_of(given, drift_of)))


class PlanView(ApiView):
    parser_classes = [DocumentBody]

    @extend_schema(
        request=PlanRequest,
        responses=PlanAnswer,
        operation_id="configuration_plan",
        parameters=[_ETAG],
    )
    def post(self, request: Request) -> Response:
        """Plan a document; nothing is changed. 400 with all faults, by object and field.

        With `days` it also requests a run of the pipeline that tries the archived messages. If a
        run of the same changes and days is waiting or under way, the answer names that one. 429
        when five others are waiting.
        """
        given = PlanRequest(data=request.data)
        given.is_valid(raise_exception=True)
        plan = _plan_of(given, plan_document)
        run = None
        if (days := given.validated_data.get("days")) is not None:
            run = _requested_run(plan, days=days, actor=actor_of(request))
        return _answer(plan, warnings=plan_warnings(plan), effects=effects_of(plan), run=run)


class EffectView(ApiView):
    @extend_schema(responses=EffectRunAnswer, operation_id="configuration_effect")
    def get(self, request: Request, pk: str) -> Response:
        """Read a run that tries a plan on archived messages, with the effects it found."""
        run = get_object_or_404(PipelineRun, step=Step.EFFECT, pk=pk)
        return Response(EffectRunAnswer(run).data)


class ApplyView(ApiView):
    parser_classes = [DocumentBody]

    @extend_schema(
        request=ApplyRequest,
        responses=PlanAnswer,
        operation_id="configuration_apply",
        parameters=[_ETAG],
    )
    def post(self, request: Request) -> Response:
        """Apply the plan with this digest, in one transaction.

        409 when the plan has changed since.
        """
        given = ApplyRequest(data=request.data)
        given.is_valid(raise_exception=True)
        digest = given.validated_data.get("digest") or request.headers.get("If-Match", "").strip(
            '"'
        )
        if not digest:
            raise invalid_field(
                "digest", "Give the digest of the plan, here or in the header If-Match."
            )
        apply = partial(apply_document, digest=digest, actor=actor_of(request))
        try:
            plan = _plan_of(given, apply)
        except PlanChangedError:
            detail = (
                "The plan is out of date: "
                "the document or the installation has changed since. Plan again."
            )
            raise Problem(409, "plan-changed", detail) from None
        return _answer(plan, warnings=[], effects=Effects(effects=[], left_out=0))


def _plan_of(given: DriftRequest, make: Callable[[ConfigurationRequest], Plan]) -> Plan:
    """Return the plan that `make` returns for a valid request; the document's faults are a 400."""
    values = given.validated_data
    try:
        document = checked_document(
            values["document"],
            lookup=lookup_of_mapping(values["secrets"]),
            # Drift has no such choice: it compares both ways.
            prune=values.get("prune", False),
        )
        return make(document)
    except RefusedDocumentError as error:
        raise _refused(error) from None


def _refused(error: RefusedDocumentError) -> Problem:
    errors = [
        {"object": fault.object, "field": fault.field, "detail": fault.detail}
        for fault in error.faults
    ]
    return Problem(400, "invalid", " ".join(map(str, error.faults[:3])), errors=errors)


def _requested_run(plan: Plan, *, days: int, actor: str) -> PipelineRun | None:
    try:
        return request_effect(plan, days=days, actor=actor, now=timezone.now())
    except TooManyRunsError as error:
        detail = f"{error} A plan without `days` requests none."
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        raise Problem(429, "too-many-runs", detail, headers=headers) from None


def _answer(
    plan: Plan, *, warnings: list[str], effects: Effects, run: PipelineRun | None = None
) -> Response:
    content = {
        "digest": plan.digest,
        **_changes(plan),
        "warnings": warnings,
        "effects": EffectSerializer(effects.effects, many=True).data,
        "not_tried": effects.left_out,
        "effect_run": None if run is None else run.pk,
    }
    return Response(content, headers={"ETag": f'"{plan.digest}"'})


def _changes(plan: Plan) -> dict[str, Any]:
    """Return the changes of a plan or drift, with secrets masked, and the unchanged parts."""
    changes = [
        {
            "verb": change.verb,
            "object": change.label,
            "fields": [
                {"name": each.name, "before": each.shown_before, "after": each.shown_after}
                for each in change.fields
            ],
        }
        for change in plan.changes
    ]
    return {
        "unchanged": plan.count(Verb.UNCHANGED),
        "changes": changes,
        "kept": [f"{label}, {name}: {reference}" for label, name, reference in plan.kept],
    }


urlpatterns = [
    re_path(r"^configuration\Z", DocumentView.as_view()),
    re_path(r"^configuration/drift\Z", DriftView.as_view()),
    re_path(r"^configuration/plan\Z", PlanView.as_view()),
    re_path(rf"^configuration/effects/(?P<pk>{ID})\Z", EffectView.as_view()),
    re_path(r"^configuration/apply\Z", ApplyView.as_view()),
]
