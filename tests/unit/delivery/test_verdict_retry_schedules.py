"""Workfront's and webMethods' schedules, with a moved clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from delivery.outcome import Outcome
from delivery.states import OutcomeClass, Status
from delivery.verdict import (
    NextStep,
    RetrySchedule,
    Rules,
    Tries,
    Verdict,
    judge,
    judge_independent,
)
from tests.unit.delivery.test_verdict import TEAMFORGE

FAILURES = (
    OutcomeClass.TIMEOUT,
    OutcomeClass.UNREACHABLE,
    OutcomeClass.TLS,
    OutcomeClass.REFUSED_ADDRESS,
    OutcomeClass.UNAVAILABLE,
    OutcomeClass.SERVER_ERROR,
    OutcomeClass.RATE_LIMITED,
    OutcomeClass.CLIENT_ERROR,
    OutcomeClass.REDIRECT,
)
FIXED = RetrySchedule(seconds=600, is_exponential=False, jitter=0, max_attempts=13, suspends=False)
EXPONENTIAL = RetrySchedule(
    seconds=84.8, is_exponential=True, jitter=0, max_attempts=12, suspends=False
)
WORKFRONT_2017 = replace(
    TEAMFORGE, name="workfront-2017", actions=dict.fromkeys(FAILURES, "RETRY_LANE"), schedule=FIXED
)
WORKFRONT_48H = replace(WORKFRONT_2017, name="workfront-48h", schedule=EXPONENTIAL)
IN_PLACE = (
    OutcomeClass.TIMEOUT,
    OutcomeClass.UNREACHABLE,
    OutcomeClass.TLS,
    OutcomeClass.REFUSED_ADDRESS,
    OutcomeClass.UNAVAILABLE,
    OutcomeClass.SERVER_ERROR,
    OutcomeClass.RATE_LIMITED,
)
WEBMETHODS = replace(
    TEAMFORGE,
    name="webmethods",
    actions=dict.fromkeys(IN_PLACE, "IN_PLACE")
    | {OutcomeClass.CLIENT_ERROR: "REJECT", OutcomeClass.REDIRECT: "REJECT"},
    stays_in_doubt=True,
    schedule=RetrySchedule(
        seconds=10, is_exponential=False, jitter=0, max_attempts=5, suspends=False
    ),
)
# The waits of the specification's table, in seconds.
LISTED = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
STANDARD_WEBHOOKS = replace(
    WORKFRONT_2017,
    name="standard-webhooks",
    blocks_when_overloaded=True,
    schedule=replace(FIXED, waits=LISTED, max_attempts=10),
)
SUSPENDING = replace(WEBMETHODS, schedule=replace(WEBMETHODS.schedule, suspends=True))
START = datetime(2026, 1, 1, tzinfo=UTC)


def failed(kind: OutcomeClass = OutcomeClass.SERVER_ERROR) -> Outcome:
    return Outcome(outcome=kind, started_at=START, duration_ms=1)


def retries_of(rules: Rules, *, late_seconds: float = 0) -> tuple[list[float], Verdict]:
    """Fail until the policy gives up.

    Return the offsets of the retries from the first failure, and the last verdict.
    """
    now, failures, offsets = START, 1, []
    verdict = judge(failed(), rules)
    while verdict.status is Status.PENDING and verdict.wait_seconds is not None:
        now += timedelta(seconds=verdict.wait_seconds + late_seconds)
        offsets.append((now - START).total_seconds())
        failures += 1
        verdict = judge(failed(), rules, Tries(failures, (now - START).total_seconds()))
    return offsets, verdict


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("rules", [WORKFRONT_2017, WORKFRONT_48H], ids=lambda rules: rules.name)
def test_workfront_hands_every_failure_to_the_retry_lane(rules: Rules, kind: OutcomeClass) -> None:
    verdict = judge(failed(kind), rules)
    assert (verdict.status, verdict.step) == (Status.PENDING, NextStep.RETRY_LANE)


def test_workfront_2017_retries_twelve_times_ten_minutes_apart() -> None:
    offsets, last = retries_of(WORKFRONT_2017)
    assert offsets == [600.0 * retry for retry in range(1, 13)]
    assert last == Verdict(status=Status.FAILED, step=NextStep.NEXT)


def test_workfront_48h_retries_eleven_times_at_the_offsets_of_its_formula() -> None:
    offsets, last = retries_of(WORKFRONT_48H)
    minutes = [1.4, 4.2, 9.9, 21.2, 43.8, 89, 179.5, 360, 722, 1446, 2893]
    assert [offset / 60 for offset in offsets] == pytest.approx(minutes, abs=0.5)
    assert offsets == pytest.approx([(2**retry - 1) * 84.8 for retry in range(1, 12)])
    assert offsets[-1] / 3600 == pytest.approx(48.2, abs=0.05)
    assert last == Verdict(status=Status.FAILED, step=NextStep.NEXT)


def test_standard_webhooks_waits_as_listed_after_each_failure() -> None:
    offsets, last = retries_of(STANDARD_WEBHOOKS)
    assert offsets == [sum(LISTED[:retry]) for retry in range(1, 10)]
    assert last == Verdict(status=Status.FAILED, step=NextStep.NEXT)


def test_retries_after_the_listed_ones_have_the_last_wait() -> None:
    endless = replace(
        STANDARD_WEBHOOKS, schedule=replace(STANDARD_WEBHOOKS.schedule, max_attempts=None)
    )
    assert judge(failed(), endless, Tries(40)).wait_seconds == LISTED[-1]


def test_standard_webhooks_honours_retry_after_for_429_and_503_only() -> None:
    for kind in (OutcomeClass.RATE_LIMITED, OutcomeClass.UNAVAILABLE):
        verdict = judge(replace(failed(kind), retry_after_seconds=7.0), STANDARD_WEBHOOKS)
        assert (verdict.step, verdict.wait_seconds) == (NextStep.BLOCK, 7.0)
        apart = judge_independent(
            replace(failed(kind), retry_after_seconds=90.0), STANDARD_WEBHOOKS
        )
        assert (apart.status, apart.wait_seconds) == (Status.PENDING, 90.0)
    late = replace(failed(OutcomeClass.SERVER_ERROR), retry_after_seconds=90.0)
    assert judge(late, STANDARD_WEBHOOKS).wait_seconds == 5.0


def test_a_late_retry_does_not_postpone_later_ones() -> None:
    offsets, _ = retries_of(WORKFRONT_48H, late_seconds=20)
    assert offsets == pytest.approx([(2**retry - 1) * 84.8 + 20 for retry in range(1, 12)])


def test_after_days_without_a_sender_retries_are_spread() -> None:
    verdict = judge(failed(), WORKFRONT_48H, Tries(3, seconds_since_first=30 * 86_400))
    assert verdict.wait_seconds == 84.8


def test_without_the_first_time_the_waits_grow_as_the_offsets_do() -> None:
    waits = [
        judge(failed(), WORKFRONT_48H, Tries(failures)).wait_seconds for failures in range(1, 5)
    ]
    assert waits == pytest.approx([84.8, 169.6, 339.2, 678.4])


def test_a_wait_varies_by_no_more_than_the_jitter() -> None:
    rules = replace(WORKFRONT_2017, schedule=replace(FIXED, jitter=0.1))
    waits = [judge(failed(), rules).wait_seconds or 0 for _ in range(500)]
    assert 540 <= min(waits) < 560
    assert 640 < max(waits) <= 660


def test_webmethods_retries_in_place_and_then_fails() -> None:
    offsets, last = retries_of(WEBMETHODS)
    assert offsets == [10.0, 20.0, 30.0, 40.0]
    assert judge(failed(), WEBMETHODS).step is NextStep.AGAIN
    assert last == Verdict(status=Status.FAILED, step=NextStep.NEXT)


@pytest.mark.parametrize("kind", [OutcomeClass.CLIENT_ERROR, OutcomeClass.REDIRECT])
def test_webmethods_rejects_refused_messages(kind: OutcomeClass) -> None:
    assert judge(failed(kind), WEBMETHODS) == Verdict(status=Status.REJECTED, step=NextStep.NEXT)


def test_webmethods_may_suspend_the_lane_instead_of_giving_up() -> None:
    assert retries_of(SUSPENDING)[1] == Verdict(status=Status.PENDING, step=NextStep.SUSPEND)


def test_without_a_limit_it_is_tried_until_it_succeeds() -> None:
    rules = replace(WEBMETHODS, schedule=replace(WEBMETHODS.schedule, max_attempts=None))
    verdict = judge(failed(), rules, Tries(1_000_000))
    assert (verdict.step, verdict.wait_seconds) == (NextStep.AGAIN, 10.0)


def test_a_rejection_may_suspend_the_lane() -> None:
    rules = replace(WEBMETHODS, suspends_on_reject=True)
    verdict = judge(failed(OutcomeClass.CLIENT_ERROR), rules)
    assert verdict == Verdict(status=Status.REJECTED, step=NextStep.SUSPEND)


@pytest.mark.parametrize(
    ("rules", "tries", "wait"),
    [
        (WORKFRONT_2017, Tries(1), 600.0),
        (WORKFRONT_48H, Tries(2, 84.8), 169.6),
        (WEBMETHODS, Tries(1), 10.0),
        (SUSPENDING, Tries(5), 60.0),
    ],
)
def test_apart_from_each_other_failures_only_wait(rules: Rules, tries: Tries, wait: float) -> None:
    verdict = judge_independent(failed(), rules, tries)
    assert (verdict.status, verdict.step) == (Status.PENDING, NextStep.SKIP)
    assert verdict.wait_seconds == pytest.approx(wait)


def test_a_rejection_suspends_no_independent_lane() -> None:
    rules = replace(WEBMETHODS, suspends_on_reject=True)
    verdict = judge_independent(failed(OutcomeClass.CLIENT_ERROR), rules)
    assert verdict == Verdict(status=Status.REJECTED, step=NextStep.NEXT)
