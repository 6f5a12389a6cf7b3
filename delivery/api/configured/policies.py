"""The resource `policies`: the action for each outcome of an attempt."""

from collections.abc import Mapping
from typing import Any

from django.forms.models import model_to_dict

from delivery.api.base.resource import Resource
from delivery.api.base.strict import NameOf, StrictModel, configured_fields
from delivery.incoming.problems import Problem
from subscriptions.checks import policy
from subscriptions.models import Policy


class PolicySerializer(StrictModel):
    """A policy: the action for each outcome of an attempt.

    `copy_of` names the policy whose values replace missing fields; without it they are those of
    `teamforge`.

    The actions: BLOCK: nothing later is sent until this delivery succeeds. SKIP: the next delivery
    is sent, this delivery again in the next run. REJECT: REJECTED, never again. UNSUPPORTED (for
    on_redirect only): 3xxNOTSUPPORTED, never again. RETRY_LANE: fresh messages flow, this delivery
    is tried again on schedule. IN_PLACE: tried again on schedule, and nothing later is sent
    meanwhile. `retry_…`, `max_attempts` and `when_used_up` belong to the last two actions, and a
    policy may use only one of those; `breaker_…`, `freeze_…` and `freezes_when_gone` apply if
    `breaks_circuit` is on.

    `success_codes` is `2xx`, or a list of status codes such as `200,201`; any other 2xx then counts
    as a 5xx.
    """

    copy_of = NameOf(queryset=Policy.objects.all(), required=False, write_only=True)

    class Meta:
        model = Policy
        fields = [
            "name",
            "description",
            "copy_of",
            *(name for name in configured_fields(Policy) if name not in ("name", "description")),
            "is_built_in",
            "created_at",
            "updated_at",
        ]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        original: Policy | None = attrs.pop("copy_of", None)
        if original is not None:
            attrs = model_to_dict(original, exclude=["id", "name", "description"]) | attrs
        return super().validate(attrs)

    def refusals(self, attrs: Mapping[str, Any]) -> Mapping[str, str]:
        return policy.refusals(attrs, stored=self.instance)


class PolicyViews(Resource):
    queryset = Policy.objects.all()
    serializer_class = PolicySerializer

    def locked(self, *, to_delete: bool = False) -> Policy:
        row: Policy = super().locked(to_delete=to_delete)
        if row.is_built_in:
            raise Problem(
                409,
                "built-in",
                f"{row.name} is built in and cannot be changed; "
                f"POST a copy with copy_of: {row.name}.",
            )
        return row
