"""A VOLATILE delivery is tried once: under any policy it waits for nothing and stops nothing."""

from dataclasses import replace

import pytest

from delivery.states import OutcomeClass, Status
from delivery.verdict import NextStep, Rules, Tries, judge, judge_independent, judge_lost
from tests.unit.delivery.test_verdict import FETCHES, STRICT, SWITCHED, TEAMFORGE, outcome
from tests.unit.delivery.test_verdict_retry_schedules import SUSPENDING, WEBMETHODS, WORKFRONT_2017

ONLY = Tries(1, is_only=True)
POLICIES = [TEAMFORGE, STRICT, SWITCHED, WORKFRONT_2017, WEBMETHODS, SUSPENDING]
FAILING = sorted(set(OutcomeClass) - {OutcomeClass.LOST, OutcomeClass.SUCCESS} - FETCHES)


@pytest.mark.parametrize("rules", POLICIES, ids=lambda rules: rules.name)
@pytest.mark.parametrize("kind", FAILING)
def test_a_volatile_deliverys_only_attempt_settles_it_and_the_lane_continues(
    rules: Rules, kind: OutcomeClass
) -> None:
    ordinary, only = judge(outcome(kind), rules), judge(outcome(kind), rules, ONLY)
    assert only.step is NextStep.NEXT
    assert only.status is (Status.FAILED if ordinary.status is Status.PENDING else ordinary.status)
    assert judge_independent(outcome(kind), rules, ONLY, moves=True) == only


def test_a_rejection_that_would_suspend_its_lane_does_not() -> None:
    rules = replace(WEBMETHODS, suspends_on_reject=True)
    verdict = judge(outcome(OutcomeClass.CLIENT_ERROR), rules, ONLY)
    assert (verdict.status, verdict.step) == (Status.REJECTED, NextStep.NEXT)


@pytest.mark.parametrize("rules", [TEAMFORGE, STRICT], ids=lambda rules: rules.name)
def test_a_volatile_delivery_in_doubt_is_neither_resent_nor_held(rules: Rules) -> None:
    assert judge_lost(rules, is_only=True).status is Status.EXPIRED


def test_independent_lanes_with_a_retry_lane_move_failed_deliveries_there() -> None:
    failed = outcome(OutcomeClass.SERVER_ERROR)
    assert judge_independent(failed, WORKFRONT_2017).step is NextStep.SKIP
    assert judge_independent(failed, WORKFRONT_2017, moves=True).step is NextStep.RETRY_LANE
    assert judge_independent(failed, TEAMFORGE, moves=True).step is NextStep.SKIP
