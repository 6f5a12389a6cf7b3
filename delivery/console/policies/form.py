"""The form of a policy: groups of fields with explanations.

A field is shown while it has an effect.
"""

from collections.abc import Mapping
from typing import Any

from delivery.console.shared.checked_form import CheckedForm
from subscriptions.checks import policy
from subscriptions.checks.policy import ACTION_FIELDS
from subscriptions.models import Policy

_RETRIES = (
    "For the actions retry lane and retry in place. Retry lane: later messages continue, and order "
    "is lost for the failed delivery. Retry in place: order is kept, "
    "and later messages of the subscriber wait."
)
_SUSPENDING = (
    "A suspended lane sends nothing and loses nothing. A person resumes it. After the last attempt "
    "it also resumes by itself, when the subscription's probe URL answers 2xx."
)
_BREAKER = (
    "Failures are counted per URL, for all subscriptions with that URL. A URL that keeps failing "
    "is first DISABLED, with occasional probes, and at last FROZEN, "
    "until a person releases it under URL health."
)
_RETRY_FIELDS = [
    "retry_schedule",
    "retry_seconds",
    "retry_waits",
    "retry_jitter",
    "max_attempts",
    "when_used_up",
]
_BREAKER_FIELDS = [
    "freezes_when_gone",
    "breaker_percent",
    "breaker_attempts",
    "breaker_failures",
    "breaker_probe_seconds",
    "freeze_failures",
    "freeze_hours",
    "freeze_failures_at_once",
]
FIELDSETS: list[tuple[str, dict[str, Any]]] = [
    (
        "Actions by outcome",
        {"fields": ["success_codes", *ACTION_FIELDS, "blocks_when_overloaded", "in_doubt"]},
    ),
    (
        "Pauses of a blocked lane",
        {"fields": ["pause_seconds", "pause_max_seconds", "retry_after_max_seconds"]},
    ),
    ("Retries", {"fields": _RETRY_FIELDS, "description": _RETRIES}),
    ("Suspending", {"fields": ["suspends_on_reject", "probe_seconds"], "description": _SUSPENDING}),
    ("Circuit breaker", {"fields": ["breaks_circuit", *_BREAKER_FIELDS], "description": _BREAKER}),
]

# A read-only page has no inputs, and so no such names in the browser: then everything is shown.
_IS_READ = "typeof breaks_circuit == 'undefined'"
_RETRYING = (
    f"[{', '.join(ACTION_FIELDS)}].some(action => ['RETRY_LANE', 'IN_PLACE'].includes(action))"
)
# Fields with a value other than neutral are shown too: an error may be about them.
_KEPT = {
    "retry_schedule": "retry_schedule != 'FIXED'",
    "max_attempts": "max_attempts",
    "when_used_up": "when_used_up == 'SUSPEND'",
}
CONDITIONS = (
    {"probe_seconds": f"{_IS_READ} || when_used_up == 'SUSPEND'"}
    | {
        field: " || ".join([_IS_READ, _RETRYING, *([_KEPT[field]] if field in _KEPT else [])])
        for field in _RETRY_FIELDS
    }
    | {"retry_waits": f"{_IS_READ} || retry_schedule == 'LISTED' || retry_waits"}
    | dict.fromkeys(_BREAKER_FIELDS, f"{_IS_READ} || breaks_circuit")
    # Without the breaker it has no effect, and the error about this is about it.
    | {"freezes_when_gone": f"{_IS_READ} || breaks_circuit || freezes_when_gone"}
)


class PolicyForm(CheckedForm[Policy]):
    def refusals(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        return policy.refusals(values, stored=self.stored)
