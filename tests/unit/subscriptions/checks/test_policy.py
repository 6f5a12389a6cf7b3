"""Combinations of a policy's values, and the errors for those that do not fit together."""

from typing import Any

import pytest
from django.forms import model_to_dict

from subscriptions.checks.policy import ACTION_FIELDS, contradictions
from subscriptions.models import Policy

IN_PLACE = {"on_unreachable": "IN_PLACE"}
RETRY_LANE = {"on_unreachable": "RETRY_LANE"}
BREAKER = {"breaks_circuit": True}
LISTED = {"retry_schedule": "LISTED", "retry_waits": "5,300"}


def contradicted(**values: Any) -> dict[str, str]:
    return contradictions(model_to_dict(Policy()) | values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        RETRY_LANE,
        RETRY_LANE | {"retry_schedule": "EXPONENTIAL", "max_attempts": 12},
        dict.fromkeys(ACTION_FIELDS, "RETRY_LANE"),
        IN_PLACE | {"max_attempts": 5},
        IN_PLACE | {"max_attempts": 5, "when_used_up": "SUSPEND"},
        IN_PLACE | {"suspends_on_reject": True},
        {"on_redirect": "REJECT"},
        RETRY_LANE | LISTED,
        IN_PLACE | LISTED,
        BREAKER,
        BREAKER | {"freezes_when_gone": True},
        BREAKER | {"breaker_failures": 5, "freeze_failures": 5, "freeze_failures_at_once": 5},
    ],
)
def test_consistent_values_are_accepted(values: dict[str, Any]) -> None:
    assert contradicted(**values) == {}


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        (
            RETRY_LANE | {"on_server_error": "IN_PLACE"},
            "on_server_error",
            "on_unreachable is RETRY_LANE and",
        ),
        ({"when_used_up": "SUSPEND"}, "when_used_up", "choose IN_PLACE"),
        (
            RETRY_LANE | {"when_used_up": "SUSPEND", "max_attempts": 3},
            "when_used_up",
            "choose IN_PLACE",
        ),
        (IN_PLACE | {"when_used_up": "SUSPEND"}, "max_attempts", "after how many attempts"),
        ({"max_attempts": 3}, "max_attempts", "RETRY_LANE and IN_PLACE"),
        (IN_PLACE | {"retry_schedule": "EXPONENTIAL"}, "retry_schedule", "choose FIXED"),
        (
            {"on_client_error": "SKIP", "on_rate_limited": "SKIP", "suspends_on_reject": True},
            "suspends_on_reject",
            "Nothing is rejected",
        ),
        (LISTED, "retry_schedule", "choose one of them"),
        (RETRY_LANE | {"retry_schedule": "LISTED"}, "retry_waits", "Say how long"),
        (RETRY_LANE | {"retry_waits": "5"}, "retry_waits", "choose LISTED"),
        ({"freezes_when_gone": True}, "freezes_when_gone", "switch breaks_circuit on"),
        ({"on_client_error": "UNSUPPORTED"}, "on_client_error", "Choose REJECT"),
        (BREAKER | {"freeze_failures": 1999}, "freeze_failures", "at least breaker_failures, 2000"),
        (
            BREAKER | {"freeze_failures_at_once": 1999},
            "freeze_failures_at_once",
            "freeze_failures, 2000",
        ),
    ],
)
def test_contradictory_values_are_reported_at_the_field_to_change(
    values: dict[str, Any], field: str, said: str
) -> None:
    (reported,) = contradicted(**values).items()
    assert reported[0] == field
    assert said in reported[1]


def test_the_overload_switch_counts_as_blocking() -> None:
    only_503 = {"on_unavailable": "IN_PLACE", "blocks_when_overloaded": True}
    assert set(contradicted(**only_503, max_attempts=3)) == {"max_attempts"}
    assert contradicted(**RETRY_LANE, **only_503) == {}


def test_thresholds_of_a_breaker_that_is_off_are_nobodys_concern() -> None:
    assert contradicted(freeze_failures=1, freeze_failures_at_once=0) == {}
