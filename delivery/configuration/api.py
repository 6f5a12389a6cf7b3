"""The configuration by REST: read as a document, planned and applied.

The request has the values of secrets, by their references. The server does not look them up in its
environment or files, because anybody with a key could read those in this way.
"""

import hashlib
from typing import Any, ClassVar

from django.urls import re_path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.configuration.applying import apply_document, checked_document, plan_document
from delivery.configuration.effect import Effect, Effects, effects_of
from delivery.models.message import public_id
from subscriptions.api.authentication import actor_of
from subscriptions.api.bodies import DocumentBody
from subscriptions.api.problems import Problem, invalid_field
from subscriptions.api.strict import JSONValue, Strict, Switch, Text
from subscriptions.api.views import ApiView
from subscriptions.configuration.apply import PlanChangedError
from subscriptions.configuration.document import FORMAT, NAMES, RefusedDocumentError
from subscriptions.configuration.document_json import document_text
from subscriptions.configuration.export import export_configuration
from subscriptions.configuration.plan import ConfigurationRequest, Plan, Verb
from subscriptions.configuration.secrets import lookup_of_mapping
from subscriptions.configuration.warnings import plan_warnings

MAX_REFERENCE_LENGTH = 4000
_LIST = {"type": "array", "items": {"type": "object", "additionalProperties": True}}


@extend_schema_field(
    {
        "type": "object",
        "required": ["format"],
        "properties": {
            "format": {"type": "integer", "enum": [FORMAT]},
            **dict.fromkeys(NAMES, _LIST),
        },
        "additionalProperties": False,
    }
)
class DocumentField(JSONValue):
    """A configuration document, as GET configuration answers it."""


class SecretValue(Text):
    """The value of a reference, which is validated where it is used."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_REFERENCE_LENGTH, allow_blank=True, **options)


class PlanRequest(Strict):
    """A document, with the values of its secrets by reference: `{"env:NAME": "value"}`."""

    document = DocumentField()
    secrets = serializers.DictField(
        child=SecretValue(),
        default=dict,
        help_text="A reference without a value keeps the stored value.",
    )
    prune = Switch(default=False, help_text="Delete objects that the document's lists do not have.")


class ApplyRequest(PlanRequest):
    """The same document, and the digest of the plan that was shown.

    If-Match may have it instead.
    """

    digest = Text(required=False, max_length=64)


class FieldChangeSerializer(serializers.Serializer[Any]):
    """A field before and after; secrets are masked."""

    name = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class ObjectChangeSerializer(serializers.Serializer[Any]):
    """The changes of one object. For a new object only fields without their default are listed."""

    verb = serializers.ChoiceField(choices=[Verb.CREATE, Verb.CHANGE, Verb.DELETE])
    object = serializers.CharField(help_text="e.g. subscription abc/orders")
    fields = FieldChangeSerializer(many=True)  # type: ignore[assignment]


class EffectSerializer(serializers.Serializer[Any]):
    """The effect of a plan on a subscription, tried on its event type's newest messages."""

    object = serializers.CharField(source="label")
    asked = serializers.IntegerField(help_text="How many of the newest messages were tried.")
    more = serializers.IntegerField(help_text="How many deliveries more.")
    fewer = serializers.IntegerField(help_text="How many deliveries fewer.")
    example_of_more = serializers.CharField(allow_null=True)
    example_of_fewer = serializers.CharField(allow_null=True)

    def to_representation(self, instance: Effect) -> dict[str, Any]:
        examples = {
            name: None if (id := getattr(instance, name)) is None else public_id(id)
            for name in ("example_of_more", "example_of_fewer")
        }
        return dict(super().to_representation(instance)) | examples


class PlanAnswer(serializers.Serializer[Any]):
    """A plan; `kept` lists secrets without a value, which stay as they are.

    After apply, no warnings and no effects.
    """

    digest = serializers.CharField()
    unchanged = serializers.IntegerField()
    changes = ObjectChangeSerializer(many=True)
    kept = serializers.ListField(child=serializers.CharField())
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="Event types that differ only in case, for example.",
    )
    effects = EffectSerializer(many=True)
    not_tried = serializers.IntegerField(
        help_text="How many more subscriptions would have an effect to try."
    )


class DocumentQuery(Strict):
    """The query parameters of the document."""

    only = Text(
        required=False, help_text=f"Names of lists with commas between: {', '.join(NAMES)}."
    )

    def validate_only(self, value: str) -> list[str]:
        names = value.split(",")
        if unknown := [name for name in names if name not in NAMES]:
            raise serializers.ValidationError(f"There is no list {unknown[0][:50]}.")
        return names


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


class PlanView(ApiView):
    parser_classes = [DocumentBody]

    @extend_schema(
        request=PlanRequest,
        responses=PlanAnswer,
        operation_id="configuration_plan",
        parameters=[_ETAG],
    )
    def post(self, request: Request) -> Response:
        """Plan a document; nothing is changed. 400 with all faults, by object and field."""
        given = PlanRequest(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            plan = plan_document(_configuration_request(given))
        except RefusedDocumentError as error:
            raise refused(error) from None
        return _answer(plan, warnings=plan_warnings(plan), effects=effects_of(plan))


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
        try:
            plan = apply_document(
                _configuration_request(given), digest=digest, actor=actor_of(request)
            )
            return _answer(plan, warnings=[], effects=Effects(effects=[], left_out=0))
        except RefusedDocumentError as error:
            raise refused(error) from None
        except PlanChangedError:
            detail = (
                "The plan is out of date: "
                "the document or the installation has changed since. Plan again."
            )
            raise Problem(409, "plan-changed", detail) from None


def refused(error: RefusedDocumentError) -> Problem:
    errors = [
        {"object": one.object, "field": one.field, "detail": one.detail} for one in error.faults
    ]
    return Problem(400, "invalid", " ".join(map(str, error.faults[:3])), errors=errors)


def _configuration_request(given: PlanRequest) -> ConfigurationRequest:
    values = given.validated_data
    try:
        return checked_document(
            values["document"], lookup=lookup_of_mapping(values["secrets"]), prune=values["prune"]
        )
    except RefusedDocumentError as error:
        raise refused(error) from None


def _answer(plan: Plan, *, warnings: list[str], effects: Effects) -> Response:
    changes = [
        {
            "verb": one.verb,
            "object": one.label,
            "fields": [
                {"name": each.name, "before": each.shown_before, "after": each.shown_after}
                for each in one.fields
            ],
        }
        for one in plan.changes
    ]
    content = {
        "digest": plan.digest,
        "unchanged": plan.count(Verb.UNCHANGED),
        "changes": changes,
        "kept": [f"{label}, {name}: {reference}" for label, name, reference in plan.kept],
        "warnings": warnings,
        "effects": EffectSerializer(effects.effects, many=True).data,
        "not_tried": effects.left_out,
    }
    return Response(content, headers={"ETag": f'"{plan.digest}"'})


urlpatterns = [
    re_path(r"^configuration\Z", DocumentView.as_view()),
    re_path(r"^configuration/plan\Z", PlanView.as_view()),
    re_path(r"^configuration/apply\Z", ApplyView.as_view()),
]
