"""The verdicts of `teamforge` and `strict` on each outcome, cell by cell."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from delivery.outcome import Outcome, answer_class, class_of
from delivery.states import OutcomeClass, Status
from delivery.verdict import (
    JITTER,
    NextStep,
    RetrySchedule,
    Rules,
    Verdict,
    judge,
    judge_lost,
    pause_seconds,
)

TEAMFORGE = Rules(
    name="teamforge",
    success_codes=None,
    actions={
        OutcomeClass.TIMEOUT: "BLOCK",
        OutcomeClass.UNREACHABLE: "BLOCK",
        OutcomeClass.TLS: "BLOCK",
        OutcomeClass.REFUSED_ADDRESS: "BLOCK",
        OutcomeClass.UNAVAILABLE: "SKIP",
        OutcomeClass.SERVER_ERROR: "SKIP",
        OutcomeClass.RATE_LIMITED: "REJECT",
        OutcomeClass.CLIENT_ERROR: "REJECT",
        OutcomeClass.REDIRECT: "UNSUPPORTED",
    },
    stays_in_doubt=False,
    blocks_when_overloaded=False,
    pause_seconds=1,
    pause_max_seconds=60,
    retry_after_max_seconds=3600,
    schedule=RetrySchedule(
        seconds=10, is_exponential=False, jitter=0, max_attempts=None, suspends=False
    ),
    suspends_on_reject=False,
    probe_seconds=60,
    breaks_circuit=False,
)
STRICT = replace(
    TEAMFORGE,
    name="strict",
    actions=TEAMFORGE.actions
    | {
        OutcomeClass.UNAVAILABLE: "BLOCK",
        OutcomeClass.SERVER_ERROR: "BLOCK",
        OutcomeClass.RATE_LIMITED: "BLOCK",
    },
    stays_in_doubt=True,
)
SWITCHED = replace(TEAMFORGE, blocks_when_overloaded=True)


def outcome(kind: OutcomeClass, *, retry_after: float | None = None) -> Outcome:
    return Outcome(
        outcome=kind,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_ms=1,
        retry_after_seconds=retry_after,
    )


def answer(status_code: int) -> Outcome:
    return outcome(class_of(status_code))


@pytest.mark.parametrize(
    ("rules", "status_code", "status", "step"),
    [
        (TEAMFORGE, 200, Status.DELIVERED, NextStep.NEXT),
        (TEAMFORGE, 204, Status.DELIVERED, NextStep.NEXT),
        (TEAMFORGE, 299, Status.DELIVERED, NextStep.NEXT),
        (TEAMFORGE, 301, Status.UNSUPPORTED, NextStep.NEXT),
        (TEAMFORGE, 304, Status.UNSUPPORTED, NextStep.NEXT),
        (TEAMFORGE, 400, Status.REJECTED, NextStep.NEXT),
        (TEAMFORGE, 404, Status.REJECTED, NextStep.NEXT),
        (TEAMFORGE, 410, Status.REJECTED, NextStep.NEXT),
        (TEAMFORGE, 429, Status.REJECTED, NextStep.NEXT),
        (TEAMFORGE, 500, Status.PENDING, NextStep.SKIP),
        (TEAMFORGE, 503, Status.PENDING, NextStep.SKIP),
        (TEAMFORGE, 599, Status.PENDING, NextStep.SKIP),
        (TEAMFORGE, 999, Status.PENDING, NextStep.SKIP),
        (STRICT, 200, Status.DELIVERED, NextStep.NEXT),
        (STRICT, 302, Status.UNSUPPORTED, NextStep.NEXT),
        (STRICT, 404, Status.REJECTED, NextStep.NEXT),
        (STRICT, 429, Status.PENDING, NextStep.BLOCK),
        (STRICT, 500, Status.PENDING, NextStep.BLOCK),
        (STRICT, 503, Status.PENDING, NextStep.BLOCK),
        (SWITCHED, 429, Status.PENDING, NextStep.BLOCK),
        (SWITCHED, 503, Status.PENDING, NextStep.BLOCK),
        (SWITCHED, 500, Status.PENDING, NextStep.SKIP),
        (SWITCHED, 404, Status.REJECTED, NextStep.NEXT),
    ],
)
def test_an_answer_leads_to_the_status_of_the_table(
    rules: Rules, status_code: int, status: Status, step: NextStep
) -> None:
    verdict = judge(answer(status_code), rules)
    assert (verdict.status, verdict.step) == (status, step)


@pytest.mark.parametrize("rules", [TEAMFORGE, STRICT, SWITCHED], ids=lambda rules: rules.name)
@pytest.mark.parametrize(
    "kind",
    [
        OutcomeClass.TIMEOUT,
        OutcomeClass.UNREACHABLE,
        OutcomeClass.TLS,
        OutcomeClass.REFUSED_ADDRESS,
    ],
)
def test_no_answer_blocks_the_lane(rules: Rules, kind: OutcomeClass) -> None:
    assert judge(outcome(kind), rules).step is NextStep.BLOCK


def test_a_fault_on_our_side_fails_the_delivery_and_frees_the_lane() -> None:
    verdict = judge(outcome(OutcomeClass.UNSENDABLE), STRICT)
    assert (verdict.status, verdict.step) == (Status.FAILED, NextStep.NEXT)


@pytest.mark.parametrize(
    ("asked", "waited"), [(None, None), (7.0, 7.0), (-1.0, 0.0), (315_360_000.0, 3600.0)]
)
def test_retry_after_is_honoured_within_its_bound(
    asked: float | None, waited: float | None
) -> None:
    assert (
        judge(outcome(OutcomeClass.UNAVAILABLE, retry_after=asked), SWITCHED).wait_seconds == waited
    )


def test_retry_after_is_ignored_without_the_switch() -> None:
    assert judge(outcome(OutcomeClass.UNAVAILABLE, retry_after=7.0), TEAMFORGE).wait_seconds == 0.0


def test_a_delivery_in_doubt_is_resent_or_held_by_the_policy() -> None:
    assert judge_lost(TEAMFORGE).status is Status.PENDING
    assert judge_lost(STRICT).status is Status.IN_DOUBT


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (50, 60), (10_000, 60)]
)
def test_the_pause_doubles_up_to_its_bound(failures: int, seconds: float) -> None:
    paused = pause_seconds(TEAMFORGE, failures=failures)
    assert seconds * (1 - JITTER) <= paused <= seconds * (1 + JITTER)


# Policies do not concern messages fetched from a mailbox.
FETCHES = {
    OutcomeClass.ACKNOWLEDGED,
    OutcomeClass.RELEASED,
    OutcomeClass.UNACKNOWLEDGED,
    OutcomeClass.DECLINED,
}


@pytest.mark.parametrize("kind", sorted(set(OutcomeClass) - {OutcomeClass.LOST} - FETCHES))
def test_every_outcome_has_a_verdict(kind: OutcomeClass) -> None:
    assert isinstance(judge(outcome(kind), TEAMFORGE), Verdict)


ONLY_200_AND_202 = frozenset({200, 202})


@pytest.mark.parametrize(
    ("status_code", "success_codes", "kind"),
    [
        (204, None, OutcomeClass.SUCCESS),
        (202, ONLY_200_AND_202, OutcomeClass.SUCCESS),
        (201, ONLY_200_AND_202, OutcomeClass.SERVER_ERROR),
        (299, ONLY_200_AND_202, OutcomeClass.SERVER_ERROR),
        (302, ONLY_200_AND_202, OutcomeClass.REDIRECT),
        (404, ONLY_200_AND_202, OutcomeClass.CLIENT_ERROR),
        (429, ONLY_200_AND_202, OutcomeClass.RATE_LIMITED),
        (503, ONLY_200_AND_202, OutcomeClass.UNAVAILABLE),
    ],
)
def test_an_answer_of_2xx_that_is_no_success_code_counts_as_a_server_error(
    status_code: int, success_codes: frozenset[int] | None, kind: OutcomeClass
) -> None:
    outcome_class, error = answer_class(status_code, success_codes=success_codes)
    assert outcome_class is kind
    is_no_success = status_code // 100 == 2 and kind is OutcomeClass.SERVER_ERROR
    assert error == ("the policy counts only 200, 202 as success" if is_no_success else "")
