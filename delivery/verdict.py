"""The verdict of a policy on an outcome. Pure."""

import random
from dataclasses import dataclass, replace
from enum import Enum

from delivery.outcome import Outcome
from delivery.states import NEVER_CALLED, OutcomeClass, Status
from subscriptions.values.schedules import doubling_pause, offset_seconds

# The pause of a blocked lane varies by this share, so lanes blocked together do not all return at
# once.
JITTER = 0.1


class NextStep(Enum):
    """The sender's next step."""

    NEXT = "next"
    SKIP = "skip"
    BLOCK = "block"
    # The same delivery again, and nothing else meanwhile, when the policy's schedule says so.
    AGAIN = "again"
    RETRY_LANE = "retry lane"
    SUSPEND = "suspend"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySchedule:
    """When and how often failures are tried again.

    `seconds` is the interval, or the unit of growing waits. With `waits` each retry has a wait
    after the failure before it, and later retries have the last wait.
    """

    seconds: float
    is_exponential: bool
    jitter: float
    max_attempts: int | None
    suspends: bool
    waits: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A policy as plain values.

    `actions` maps each outcome class to a name of `subscriptions.models.Action`. `success_codes`
    are the successful answers of 2xx, None for all: `delivery.outcome` classifies an answer by
    them, so an outcome is the same in the attempt, in the URL's health and in the verdict.
    """

    name: str
    success_codes: frozenset[int] | None
    actions: dict[OutcomeClass, str]
    stays_in_doubt: bool
    blocks_when_overloaded: bool
    pause_seconds: float
    pause_max_seconds: float
    retry_after_max_seconds: float
    schedule: RetrySchedule
    suspends_on_reject: bool
    probe_seconds: float
    breaks_circuit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The effect of an attempt: the delivery's new status, and the sender's next step.

    `wait_seconds` is the time until the next attempt, if the schedule sets it, or if the endpoint
    requested it and the policy honours the request.
    """

    status: Status
    step: NextStep
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Tries:
    """The failures of a delivery, including this failure, and the age of the first, if known.

    Attempts before a person's resubmission do not count. `is_only`: a VOLATILE delivery has a
    single try.
    """

    failures: int
    seconds_since_first: float | None = None
    is_only: bool = False


FIRST_TRY = Tries(1)

_OVERLOADED = frozenset({OutcomeClass.RATE_LIMITED, OutcomeClass.UNAVAILABLE})

_VERDICTS = {
    "BLOCK": Verdict(status=Status.PENDING, step=NextStep.BLOCK),
    # Due at once: in its place in an ordered lane, otherwise as soon as there is room.
    "SKIP": Verdict(status=Status.PENDING, step=NextStep.SKIP, wait_seconds=0.0),
    "REJECT": Verdict(status=Status.REJECTED, step=NextStep.NEXT),
    "UNSUPPORTED": Verdict(status=Status.UNSUPPORTED, step=NextStep.NEXT),
}
_DELIVERED = Verdict(status=Status.DELIVERED, step=NextStep.NEXT)
_FAILED = Verdict(status=Status.FAILED, step=NextStep.NEXT)
_USED_UP = Verdict(status=Status.PENDING, step=NextStep.SUSPEND)
_REJECTED_AND_SUSPENDED = Verdict(status=Status.REJECTED, step=NextStep.SUSPEND)
_SCHEDULED = {"IN_PLACE": NextStep.AGAIN, "RETRY_LANE": NextStep.RETRY_LANE}


def judge(outcome: Outcome, rules: Rules, tries: Tries = FIRST_TRY) -> Verdict:
    """Return the policy's verdict on an outcome.

    A fault on our side, or of the script, settles the delivery as FAILED: sending it again would
    fail again, and it must not stop the lane. An only try settles the delivery, whatever the
    policy, and stops nothing.
    """
    if outcome.outcome is OutcomeClass.SUCCESS:
        return _DELIVERED
    if outcome.outcome in NEVER_CALLED:
        return _FAILED
    verdict = _judge_failure(outcome, rules, tries)
    if not tries.is_only or verdict.step is NextStep.NEXT:
        return verdict
    return _FAILED if verdict.status is Status.PENDING else replace(verdict, step=NextStep.NEXT)


def _judge_failure(outcome: Outcome, rules: Rules, tries: Tries) -> Verdict:
    if rules.blocks_when_overloaded and outcome.outcome in _OVERLOADED:
        return _overloaded(outcome, rules)
    action = rules.actions[outcome.outcome]
    if action in _SCHEDULED:
        return _scheduled(rules.schedule, tries, step=_SCHEDULED[action])
    if action == "REJECT" and rules.suspends_on_reject:
        return _REJECTED_AND_SUSPENDED
    return _VERDICTS[action]


def judge_independent(
    outcome: Outcome, rules: Rules, tries: Tries = FIRST_TRY, *, moves: bool = False
) -> Verdict:
    """Return the verdict where deliveries are independent: nothing blocks, open deliveries wait.

    This applies to QUEUE messages, callbacks, the retry lane, and CONCURRENT subscribers. A policy
    still `moves` deliveries of a CONCURRENT subscriber to the retry lane.
    """
    verdict = judge(outcome, rules, tries)
    if verdict.status is not Status.PENDING:
        return Verdict(status=verdict.status, step=NextStep.NEXT)
    if moves and verdict.step is NextStep.RETRY_LANE:
        return verdict
    if verdict.step is NextStep.SUSPEND:
        wait = rules.probe_seconds
    elif verdict.step in (NextStep.AGAIN, NextStep.RETRY_LANE):
        wait = verdict.wait_seconds or 0.0
    else:
        wait = max(verdict.wait_seconds or 0.0, pause_seconds(rules, failures=tries.failures))
    return Verdict(status=verdict.status, step=NextStep.SKIP, wait_seconds=wait)


def judge_lost(rules: Rules, *, is_only: bool = False) -> Verdict:
    """Return the verdict on a delivery whose sender died after it may have been sent.

    A VOLATILE delivery is dropped.
    """
    if is_only:
        return Verdict(status=Status.EXPIRED, step=NextStep.NEXT)
    if rules.stays_in_doubt:
        return Verdict(status=Status.IN_DOUBT, step=NextStep.NEXT)
    return Verdict(status=Status.PENDING, step=NextStep.NEXT, wait_seconds=0.0)


def pause_seconds(rules: Rules, *, failures: int) -> float:
    """Return how long a lane pauses after so many fruitless tries in a row, the first being 1."""
    return _usual_pause(rules, failures=failures) * random.uniform(1 - JITTER, 1 + JITTER)


def least_pause_seconds(rules: Rules, *, failures: int) -> float:
    """Return the shortest of these pauses, which no pause of a lane falls short of."""
    return _usual_pause(rules, failures=failures) * (1 - JITTER)


def _usual_pause(rules: Rules, *, failures: int) -> float:
    return doubling_pause(rules.pause_seconds, failures=failures, longest=rules.pause_max_seconds)


def requested_pause(outcome: Outcome, rules: Rules) -> float | None:
    """Return the pause requested by the endpoint, as far as the policy honours it."""
    is_honoured = rules.blocks_when_overloaded and outcome.outcome in _OVERLOADED
    if not is_honoured or outcome.retry_after_seconds is None:
        return None
    return min(max(outcome.retry_after_seconds, 0.0), rules.retry_after_max_seconds)


def retry_seconds(schedule: RetrySchedule, tries: Tries) -> float:
    """Return the wait until the next try.

    Workfront's exponential schedule gives the offset of the n-th retry from the first failure, (2^n
    - 1) units, so the waits between two grow as 2^n. A late retry does not bring the next one
    closer than one unit after it.
    """
    if schedule.waits:
        return _varied(
            schedule.waits[min(tries.failures, len(schedule.waits)) - 1], schedule.jitter
        )
    if not schedule.is_exponential:
        return _varied(schedule.seconds, schedule.jitter)
    since_first = tries.seconds_since_first
    if since_first is None:
        since_first = _offset_seconds(schedule, tries.failures - 1)
    wait = max(_offset_seconds(schedule, tries.failures) - since_first, schedule.seconds)
    return _varied(wait, schedule.jitter)


def _scheduled(schedule: RetrySchedule, tries: Tries, *, step: NextStep) -> Verdict:
    if schedule.max_attempts is not None and tries.failures >= schedule.max_attempts:
        return _USED_UP if schedule.suspends and step is NextStep.AGAIN else _FAILED
    return Verdict(status=Status.PENDING, step=step, wait_seconds=retry_seconds(schedule, tries))


def _overloaded(outcome: Outcome, rules: Rules) -> Verdict:
    return Verdict(
        status=Status.PENDING, step=NextStep.BLOCK, wait_seconds=requested_pause(outcome, rules)
    )


def _offset_seconds(schedule: RetrySchedule, retry: int) -> float:
    return offset_seconds(retry, seconds=schedule.seconds, is_exponential=schedule.is_exponential)


def _varied(seconds: float, jitter: float) -> float:
    return seconds * random.uniform(1 - jitter, 1 + jitter) if jitter else seconds
