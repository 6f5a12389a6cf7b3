"""The description of a policy for administrators: the schedule in it is the real one."""

import pytest

from delivery.console.policies import schedule_words
from delivery.console.policies.words import policy_sentences, policy_summary
from subscriptions.models import Policy

WORKFRONT = {"on_unreachable": "RETRY_LANE", "retry_schedule": "EXPONENTIAL", "retry_seconds": 84.8}


def said(**values: object) -> str:
    return " ".join(policy_sentences(Policy(**values)))


def test_workfronts_offsets_are_those_of_its_documentation() -> None:
    policy = Policy(**WORKFRONT, max_attempts=12)
    minutes = [schedule_words.offset(policy, retry) / 60 for retry in range(1, 12)]
    assert minutes == pytest.approx(
        [1.4, 4.2, 9.9, 21.2, 43.8, 89, 179.5, 360, 722, 1446, 2893], rel=0.01
    )
    assert (
        "Retries come 85 s, 4 min, 10 min, 21 min, … 48 h after the first failure, 11 in all."
        in said(**WORKFRONT, max_attempts=12)
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"retry_seconds": 600, "max_attempts": 13},
            "10 min after each failure, 12 times: the last 2 h after",
        ),
        ({"retry_seconds": 10}, "Retries come 10 s after each failure, until it succeeds."),
        ({"max_attempts": 2}, "Retries come 10 s after each failure, once."),
        ({"max_attempts": 1}, "With one attempt, nothing is tried again."),
        (
            {"retry_schedule": "EXPONENTIAL", "retry_seconds": 2},
            "2 s, 6 s, 14 s, 30 s, 62 s, 2 min after",
        ),
        (
            {"retry_schedule": "LISTED", "retry_waits": "5,300,1800", "max_attempts": 4},
            "Retries come 5 s, 5 min, 35 min after the first failure, 3 in all.",
        ),
        ({"retry_jitter": 0.25}, "varies by up to 25 % by chance"),
        ({"max_attempts": 5}, "When the 5 attempts have failed, the delivery is FAILED"),
    ],
)
def test_the_schedule_of_the_retry_lane_is_described(values: dict[str, object], words: str) -> None:
    assert words in said(on_unreachable="RETRY_LANE", **values)


def test_success_codes_are_described() -> None:
    assert "When the endpoint answers 2xx: the delivery is DELIVERED." in said()
    assert "answers 200 or 201: the delivery is DELIVERED. Any other 2xx counts as a 5xx." in said(
        success_codes="201,200"
    )
    assert policy_summary(Policy(success_codes="200")).startswith("only 200 is success, ")


def test_suspending_and_resuming_are_described() -> None:
    words = said(
        on_unreachable="IN_PLACE", max_attempts=5, when_used_up="SUSPEND", suspends_on_reject=True
    )
    assert "the lane is SUSPENDED with that delivery on top" in words
    assert "called every 60 s" in words
    assert "A REJECTED delivery also suspends the lane" in words


def test_settings_without_effect_are_not_described() -> None:
    words = said()
    for unsaid in ("Retries", "SUSPENDED", "DISABLED", "Retry-After"):
        assert unsaid not in words
    everything_by_the_retry_lane = dict.fromkeys(
        ["on_unreachable", "on_unavailable", "on_server_error"], "RETRY_LANE"
    )
    assert "blocked lane" not in said(**everything_by_the_retry_lane)


def test_freezing_a_url_that_is_gone_is_described() -> None:
    assert "410 freezes the URL at once" in said(breaks_circuit=True, freezes_when_gone=True)
    assert "410 freezes the URL" in policy_summary(
        Policy(breaks_circuit=True, freezes_when_gone=True)
    )


def test_a_breakers_thresholds_are_described() -> None:
    words = said(breaks_circuit=True)
    assert "more than 70 % of more than 100 attempts failed, or 2,000 in a row" in words
    assert "FROZEN after more than 2,000 failures in a row and 72 h" in words


def test_one_line_distinguishes_policies() -> None:
    assert policy_summary(Policy()) == (
        "unreachable blocks, 5xx skips and tries again, 4xx rejects, in doubt is sent again"
    )
    assert policy_summary(Policy(**WORKFRONT, max_attempts=12, breaks_circuit=True)).startswith(
        "unreachable goes to the retry lane (11 retries within 48 h, then FAILED), 5xx skips"
    )
    suspending = Policy(on_unreachable="IN_PLACE", max_attempts=5, when_used_up="SUSPEND")
    assert "(4 retries within 40 s, then suspends)" in policy_summary(suspending)
