"""The resource `common-scripts`: scripts that others include by name."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from subscriptions.api.problems import Place
from subscriptions.api.resource import Resource
from subscriptions.api.strict import StrictModel, Text
from subscriptions.checks import script
from subscriptions.models import CommonScript


class CommonScriptSerializer(StrictModel):
    """A common script. A line `$include$name` in a script is replaced by its text."""

    text = Text(
        max_length=None, allow_blank=True, help_text="JavaScript (ES5), as in scripts of subscriptions."
    )

    class Meta:
        model = CommonScript
        fields = ["name", "description", "text", "runs_first", "created_at", "updated_at"]
        extra_kwargs = {"name": {"validators": CommonScript._meta.get_field("name").validators}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        name = attrs.get("name") or self.instance.name  # type: ignore[union-attr]
        if self.instance is not None and (refused := script.name_refusal(self.instance, name)):
            raise serializers.ValidationError({"name": refused})
        text = attrs.get("text")
        if text and (fault := script.fault(text, common=self.context.get("common"), own=name)):
            place = None if fault.source or fault.line is None else Place(fault.line, fault.column or 1)
            raise serializers.ValidationError(
                {"text": ErrorDetail(str(fault), code=place)}  # type: ignore[arg-type]
            )
        return super().validate(attrs)


class CommonScriptViews(Resource):
    queryset = CommonScript.objects.all()
    serializer_class = CommonScriptSerializer
    instead_of_deleting = "remove the line that includes it first"
