"""The resource `common-scripts`: scripts, included by others by name."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from delivery.api.base.resource import Resource
from delivery.api.base.strict import StrictModel, Text
from delivery.incoming.problems import Place
from subscriptions.checks import common_script, script
from subscriptions.models import CommonScript


class CommonScriptSerializer(StrictModel):
    """A common script. A line `$include$name` in a script is replaced by its text."""

    text = Text(
        max_length=None,
        allow_blank=True,
        help_text="JavaScript (ES5), as in scripts of subscriptions.",
    )

    class Meta:
        model = CommonScript
        fields = ["name", "description", "text", "runs_first", "created_at", "updated_at"]
        extra_kwargs = {"name": {"validators": CommonScript._meta.get_field("name").validators}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        row = self._changed_row(attrs)
        assert isinstance(row, CommonScript)
        if self.instance is not None and (
            refused := common_script.rename_refusal(self.instance, row.name)
        ):
            raise serializers.ValidationError({"name": refused})
        # A configuration file checks the including scripts once for all common scripts.
        common = self.context.get("common")
        before = script.library() if common is None else common
        if fault := script.fault(attrs.get("text", ""), common=before, own=row.name):
            place = (
                None if fault.source or fault.line is None else Place(fault.line, fault.column or 1)
            )
            raise serializers.ValidationError(
                {"text": ErrorDetail(str(fault), code=place)}  # type: ignore[arg-type]
            )
        old_name = row.name if self.instance is None else self.instance.name
        if common is None and (
            refused := common_script.refusal_of_script(row, old_name=old_name, before=before)
        ):
            raise serializers.ValidationError({"text": refused})
        return attrs


class CommonScriptViews(Resource):
    queryset = CommonScript.objects.all()
    serializer_class = CommonScriptSerializer
    instead_of_deleting = "remove the line that includes it first"
