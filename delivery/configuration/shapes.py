"""The shapes of requests and answers about the configuration as a document."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.api.base.strict import JSONValue, Strict, Switch, Text, WholeNumber
from delivery.configuration.archive_effect import MOST_DAYS, archive_effects
from delivery.configuration.document.document import FORMAT, NAMES
from delivery.configuration.document.plan import Verb
from delivery.configuration.effect import Effect
from delivery.models import PipelineRun, RunState
from delivery.models.message import public_id

MAX_REFERENCE_LENGTH = 4000
_PRUNE = "Delete objects that the document's lists do not have."
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


class DriftRequest(Strict):
    """A document to compare, with the values of its secrets: `{"env:NAME": "value"}`."""

    document = DocumentField()
    secrets = serializers.DictField(
        child=SecretValue(),
        default=dict,
        help_text="A reference without a value keeps the stored value.",
    )


class PlanRequest(DriftRequest):
    """A document to plan, with the values of its secrets by reference."""

    prune = Switch(default=False, help_text=_PRUNE)
    days = WholeNumber(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text=(
            "Also request a run of the pipeline that tries the archived messages of the last days."
        ),
    )


class ApplyRequest(DriftRequest):
    """The same document, and the digest of the plan that was shown.

    If-Match may have it instead.
    """

    prune = Switch(default=False, help_text=_PRUNE)
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
    """The effect of a plan on a subscription, tried on messages of its event type.

    A plan tries the newest messages, a run the archived ones.
    """

    object = serializers.CharField(source="label")
    asked = serializers.IntegerField(help_text="How many messages were tried.")
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


class DriftAnswer(serializers.Serializer[Any]):
    """The changes that would make the installation equal to the document.

    `kept` lists secrets without a value, which are not compared.
    """

    unchanged = serializers.IntegerField()
    changes = ObjectChangeSerializer(many=True)
    kept = serializers.ListField(child=serializers.CharField())


class PlanAnswer(DriftAnswer):
    """A plan; `kept` lists secrets without a value, which stay as they are.

    After apply, no warnings, no effects and no run.
    """

    digest = serializers.CharField()
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="Event types that differ only in case, for example.",
    )
    effects = EffectSerializer(many=True)
    not_tried = serializers.IntegerField(
        help_text="How many more subscriptions would have an effect to try."
    )
    effect_run = serializers.IntegerField(
        allow_null=True,
        help_text=(
            "The run that tries the archived messages, see GET configuration/effects/{id}; null "
            "without `days`, and if the plan changes no subscription's matches."
        ),
    )


class WrittenMoment(serializers.DateTimeField):
    """A moment kept as ISO text by a run, shown as other moments are."""

    def to_representation(self, value: Any) -> Any:
        return super().to_representation(datetime.fromisoformat(value))


class EffectRunAnswer(serializers.ModelSerializer[PipelineRun]):
    """A run that tries a plan on archived messages; it has `effects` once it is DONE.

    It tries the messages published from `since` to `until`, where the archive ends. `error` is the
    reason why it FAILED.
    """

    state = serializers.ChoiceField(choices=RunState.choices)
    since = WrittenMoment(source="options.since")
    until = WrittenMoment(source="result.until", default=None, allow_null=True)
    effects = serializers.SerializerMethodField()

    class Meta:
        model = PipelineRun
        fields = [
            "id",
            "state",
            "since",
            "until",
            "effects",
            "error",
            "asked_by",
            "asked_at",
            "started_at",
            "ended_at",
        ]

    @extend_schema_field(EffectSerializer(many=True))
    def get_effects(self, run: PipelineRun) -> Any:
        return EffectSerializer(archive_effects(run.result), many=True).data


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
