"""The resource `policies`: the action for each outcome of an attempt."""

from typing import Any

from django.forms.models import model_to_dict
from rest_framework import serializers

from delivery.api.base.resource import Resource
from delivery.api.base.strict import NameOf, StrictModel
from delivery.incoming.problems import Problem
from subscriptions.checks.policy import contradictions
from subscriptions.models import Policy


class PolicySerializer(StrictModel):
    """A policy: the action for each outcome of an attempt.

    `copy_of` names the policy whose values replace missing fields; without it they are those of
    `teamforge`.

    The actions: BLOCK: nothing later is sent until this one succeeds. SKIP: the next is sent, this
    one again in the next run. REJECT: REJECTED, never again. UNSUPPORTED (for on_redirect only):
    3xxNOTSUPPORTED, never again. RETRY_LANE: fresh messages flow, this one is tried again on
    schedule. IN_PLACE: tried again on schedule, and nothing later is sent meanwhile. `retry_…`,
    `max_attempts` and `when_used_up` belong to the last two actions, and a policy may use only one
    of those; `breaker_…`, `freeze_…` and
    `freezes_when_gone` apply if `breaks_circuit` is on.

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
            "success_codes",
            "on_unreachable",
            "on_unavailable",
            "on_server_error",
            "on_rate_limited",
            "on_client_error",
            "on_redirect",
            "in_doubt",
            "blocks_when_overloaded",
            "pause_seconds",
            "pause_max_seconds",
            "retry_after_max_seconds",
            "retry_schedule",
            "retry_seconds",
            "retry_waits",
            "retry_jitter",
            "max_attempts",
            "when_used_up",
            "suspends_on_reject",
            "probe_seconds",
            "breaks_circuit",
            "freezes_when_gone",
            "breaker_percent",
            "breaker_attempts",
            "breaker_failures",
            "breaker_probe_seconds",
            "freeze_failures",
            "freeze_hours",
            "freeze_failures_at_once",
            "is_built_in",
            "created_at",
            "updated_at",
        ]
        read_only_fields = ["is_built_in"]
        extra_kwargs = {"name": {"validators": Policy._meta.get_field("name").validators}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        original: Policy | None = attrs.pop("copy_of", None)
        if original is not None:
            attrs = model_to_dict(original, exclude=["id", "name", "description"]) | attrs
        if errors := contradictions(model_to_dict(self.instance or Policy()) | attrs):
            raise serializers.ValidationError(errors)
        return super().validate(attrs)


class PolicyViews(Resource):
    queryset = Policy.objects.all()
    serializer_class = PolicySerializer

    def locked(self, *, to_delete: bool = False) -> Policy:
        policy: Policy = super().locked(to_delete=to_delete)
        if policy.is_built_in:
            raise Problem(
                409,
                "built-in",
                f"{policy.name} is built in and cannot be changed; "
                f"POST a copy with copy_of: {policy.name}.",
            )
        return policy
