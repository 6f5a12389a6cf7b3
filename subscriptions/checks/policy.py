"""The rules about the values of a policy together, for every creation and change.

The validators of the model check single values. A value without effect is refused rather than
stored, because whoever sets it expects an effect.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from django.forms.models import model_to_dict

from subscriptions.models.policy import Action, Policy, Schedule, UsedUp
from subscriptions.values.refusals import Refusal

ACTION_FIELDS = (
    "on_unreachable",
    "on_unavailable",
    "on_server_error",
    "on_rate_limited",
    "on_client_error",
    "on_redirect",
)
# `blocks_when_overloaded`, if it is on, overrides the actions of these.
OVERLOAD_FIELDS = ("on_unavailable", "on_rate_limited")
RETRYING = (Action.RETRY_LANE, Action.IN_PLACE)

FieldError = tuple[str, str]


def refusals(values: Mapping[str, Any], *, stored: Policy | None = None) -> dict[str, Refusal]:
    """Return field → reason for a policy with the given values; empty if they fit together.

    `stored` has the others, or else they are the defaults.
    """
    values = model_to_dict(stored or Policy()) | dict(values)
    errors = [
        *_pauses(values),
        *_unsupported(values),
        *_mixed_retries(values),
        *_retries(values),
        *_suspending(values),
    ]
    errors += _listed(values)
    if values["breaks_circuit"]:
        errors += _thresholds(values)
    elif values["freezes_when_gone"]:
        reason = "Only the circuit breaker freezes a URL; switch breaks_circuit on, or this off."
        errors.append(("freezes_when_gone", reason))
    return {field: Refusal(reason) for field, reason in errors}


def actions_in_effect(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the action of each outcome, with the switch for 503 and 429 applied."""
    actions = {field: values[field] for field in ACTION_FIELDS}
    if values["blocks_when_overloaded"]:
        actions |= dict.fromkeys(OVERLOAD_FIELDS, Action.BLOCK)
    return actions


def _pauses(values: Mapping[str, Any]) -> Iterator[FieldError]:
    if values["pause_seconds"] > values["pause_max_seconds"]:
        yield "pause_seconds", "pause_seconds must not be more than pause_max_seconds."


def _unsupported(values: Mapping[str, Any]) -> Iterator[FieldError]:
    for field in ACTION_FIELDS:
        if values[field] == Action.UNSUPPORTED and field != "on_redirect":
            yield field, "Choose REJECT: only an answer of 3xx can lead to 3xxNOTSUPPORTED."


def _mixed_retries(values: Mapping[str, Any]) -> Iterator[FieldError]:
    first: dict[str, str] = {}
    for field, action in actions_in_effect(values).items():
        first.setdefault(action, field)
    if set(RETRYING) <= set(first):
        retry_lane, in_place = first[Action.RETRY_LANE], first[Action.IN_PLACE]
        yield (
            in_place,
            f"{retry_lane} is RETRY_LANE and {in_place} is IN_PLACE: choose one of the two "
            "throughout the policy. The retry lane lets later messages pass, "
            "a retry in place holds them back.",
        )


def _retries(values: Mapping[str, Any]) -> Iterator[FieldError]:
    actions = set(actions_in_effect(values).values())
    if values["max_attempts"] is not None and actions.isdisjoint(RETRYING):
        yield (
            "max_attempts",
            "It counts the attempts of the actions RETRY_LANE and IN_PLACE; choose one of them for "
            "some outcome, or leave this empty.",
        )
    if values["retry_schedule"] == Schedule.EXPONENTIAL and Action.RETRY_LANE not in actions:
        yield (
            "retry_schedule",
            (
                "EXPONENTIAL is a schedule of the retry lane; choose FIXED, "
                "or RETRY_LANE for some outcome."
            ),
        )


def _listed(values: Mapping[str, Any]) -> Iterator[FieldError]:
    if values["retry_schedule"] != Schedule.LISTED:
        if values["retry_waits"]:
            yield (
                "retry_waits",
                "These are the waits of a LISTED schedule; choose LISTED, or leave this empty.",
            )
        return
    if not values["retry_waits"]:
        yield (
            "retry_waits",
            "Say how long each retry of a LISTED schedule waits, in seconds: 5,300,1800.",
        )
    if set(actions_in_effect(values).values()).isdisjoint(RETRYING):
        yield (
            "retry_schedule",
            (
                "LISTED is a schedule of the actions RETRY_LANE and IN_PLACE; choose one of them "
                "for some outcome, or FIXED."
            ),
        )


def _suspending(values: Mapping[str, Any]) -> Iterator[FieldError]:
    actions = set(actions_in_effect(values).values())
    if values["when_used_up"] == UsedUp.SUSPEND:
        if Action.IN_PLACE not in actions:
            yield (
                "when_used_up",
                (
                    "SUSPEND follows on attempts made in place; "
                    "choose IN_PLACE for some outcome, or FAIL."
                ),
            )
        elif values["max_attempts"] is None:
            yield (
                "max_attempts",
                (
                    "Say after how many attempts the lane is suspended, e.g. 5: "
                    "without a number they are never used up."
                ),
            )
    if values["suspends_on_reject"] and Action.REJECT not in actions:
        yield (
            "suspends_on_reject",
            (
                "Nothing is rejected under this policy; choose REJECT for some outcome, "
                "or switch this off."
            ),
        )


def _thresholds(values: Mapping[str, Any]) -> Iterator[FieldError]:
    breaks, freezes = values["breaker_failures"], values["freeze_failures"]
    if freezes < breaks:
        yield (
            "freeze_failures",
            f"A URL is disabled before it is frozen; give at least breaker_failures, {breaks}.",
        )
    if values["freeze_failures_at_once"] < freezes:
        yield (
            "freeze_failures_at_once",
            (
                f"Give at least freeze_failures, {freezes}: "
                "below it this rule would leave the other one no case."
            ),
        )
