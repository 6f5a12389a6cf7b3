"""What a policy makes of an outcome: SPEC 4's table, pure."""

import random
from dataclasses import dataclass
from enum import Enum

from delivery.outcome import Outcome
from delivery.states import OutcomeClass, Status

# The pause of a blocked lane varies by this share, so that lanes that were blocked
# together do not all come back at once.
JITTER = 0.1


class Step(Enum):
    """What the sender does next."""

    NEXT = "next"
    SKIP = "skip"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A policy as plain values; `actions` maps each outcome class to BLOCK, SKIP, REJECT or UNSUPPORTED."""

    name: str
    actions: dict[OutcomeClass, str]
    holds_in_doubt: bool
    blocks_when_overloaded: bool
    pause_seconds: float
    pause_max_seconds: float
    retry_after_max_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one attempt leads to: the delivery's new status, and the sender's next step.

    `wait_seconds` is set only when the endpoint asked for it and the policy honours that.
    """

    status: Status
    step: Step
    wait_seconds: float | None = None


_OVERLOADED = frozenset({OutcomeClass.RATE_LIMITED, OutcomeClass.UNAVAILABLE})

_VERDICTS = {
    "BLOCK": Verdict(status=Status.PENDING, step=Step.BLOCK),
    "SKIP": Verdict(status=Status.PENDING, step=Step.SKIP),
    "REJECT": Verdict(status=Status.REJECTED, step=Step.NEXT),
    "UNSUPPORTED": Verdict(status=Status.UNSUPPORTED, step=Step.NEXT),
}
_DELIVERED = Verdict(status=Status.DELIVERED, step=Step.NEXT)
_FAILED = Verdict(status=Status.FAILED, step=Step.NEXT)


def judge(outcome: Outcome, rules: Rules) -> Verdict:
    """Say what the policy makes of an outcome.

    A fault on our side settles the delivery as FAILED: sending it again would fail
    again, and it must not stop the lane.
    """
    if outcome.outcome is OutcomeClass.SUCCESS:
        return _DELIVERED
    if outcome.outcome is OutcomeClass.UNSENDABLE:
        return _FAILED
    if rules.blocks_when_overloaded and outcome.outcome in _OVERLOADED:
        return _overloaded(outcome, rules)
    return _VERDICTS[rules.actions[outcome.outcome]]


def judge_lost(rules: Rules) -> Verdict:
    """Say what becomes of a delivery whose sender died after it may have been sent."""
    if rules.holds_in_doubt:
        return Verdict(status=Status.IN_DOUBT, step=Step.NEXT)
    return Verdict(status=Status.PENDING, step=Step.NEXT)


def pause_seconds(rules: Rules, *, failures: int) -> float:
    """Return how long a lane pauses after so many fruitless tries in a row, the first being 1."""
    # The exponent is bounded so that a lane blocked for years does not overflow.
    doubled = rules.pause_seconds * 2.0 ** min(failures - 1, 30)
    return min(doubled, rules.pause_max_seconds) * random.uniform(1 - JITTER, 1 + JITTER)


def _overloaded(outcome: Outcome, rules: Rules) -> Verdict:
    asked = outcome.retry_after_seconds
    wait = None if asked is None else min(max(asked, 0.0), rules.retry_after_max_seconds)
    return Verdict(status=Status.PENDING, step=Step.BLOCK, wait_seconds=wait)
