"""The resource `common-scripts`: scripts, included by others by name."""

from collections.abc import Mapping
from typing import Any, ClassVar

from delivery.api.base.resource import Resource
from delivery.api.base.strict import StrictModel
from subscriptions.checks import common_script
from subscriptions.models import CommonScript


class CommonScriptSerializer(StrictModel):
    """A common script. A line `$include$name` in a script is replaced by the script's text."""

    class Meta:
        model = CommonScript
        fields = ["name", "description", "text", "runs_first", "created_at", "updated_at"]
        # The engine has another limit, with a better message.
        extra_kwargs: ClassVar[dict[str, Any]] = {"text": {"max_length": None, "allow_blank": True}}

    def refusals(self, attrs: Mapping[str, Any]) -> Mapping[str, str]:
        # A configuration file checks the scripts that include it once for all common scripts.
        return common_script.refusals(
            attrs, stored=self.instance, common=self.context.get("common")
        )


class CommonScriptViews(Resource):
    queryset = CommonScript.objects.all()
    serializer_class = CommonScriptSerializer
    instead_of_deleting = "remove the line that includes it first"
