"""The outcome of an attempt as plain values; `delivery.verdict` judges it."""

from dataclasses import dataclass
from datetime import datetime

from delivery.states import OutcomeClass
from subscriptions.scripts.jobs import ScriptFault

# The class of an attempt without an answer, and the reason in words.
Fault = tuple[OutcomeClass, str]

EXCERPT_BYTES = 4096
# The limit of informational answers (1xx) before the final answer.
MAX_INFORMATIONAL = 10

REQUEST_TIMEOUT = 408
GONE = 410
TOO_MANY_REQUESTS = 429
SERVICE_UNAVAILABLE = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of an attempt. `retry_after_seconds` is the endpoint's request, unbounded."""

    outcome: OutcomeClass
    started_at: datetime
    duration_ms: int
    status_code: int | None = None
    error: str = ""
    excerpt: bytes = b""
    retry_after_seconds: float | None = None

    @property
    def reason(self) -> str:
        """The outcome as the console shows it."""
        answered = f"{self.status_code}" if self.status_code is not None else self.outcome.label
        return f"{answered}: {self.error}" if self.error else answered


def lost_outcome(now: datetime) -> Outcome:
    """Return the outcome of an attempt perhaps made without a recorded outcome."""
    return Outcome(
        outcome=OutcomeClass.LOST,
        started_at=now,
        duration_ms=0,
        error="it may have been sent; no outcome was recorded",
    )


def unsendable_outcome(fault: str, *, now: datetime) -> Outcome:
    """Return the outcome of an only try prevented by a fault of ours."""
    return Outcome(outcome=OutcomeClass.UNSENDABLE, started_at=now, duration_ms=0, error=fault)


def script_failed(fault: ScriptFault, *, now: datetime) -> Outcome:
    """Return the outcome of a delivery whose script failed.

    A text thrown by the script may be a part of the message. It is kept as an excerpt, which only
    people who may see payloads can read; the error also goes into the journal, incidents and mail.
    """
    return Outcome(
        outcome=OutcomeClass.SCRIPT,
        started_at=now,
        duration_ms=0,
        error=fault.shared,
        excerpt=str(fault).encode(errors="replace")[:EXCERPT_BYTES] if fault.kind else b"",
    )


def class_of(status_code: int) -> OutcomeClass:
    """Return the class of an answer; a number that is no HTTP status counts as a server error."""
    if status_code == TOO_MANY_REQUESTS:
        return OutcomeClass.RATE_LIMITED
    if status_code == SERVICE_UNAVAILABLE:
        return OutcomeClass.UNAVAILABLE
    return _CLASS_OF_HUNDRED.get(status_code // 100, OutcomeClass.SERVER_ERROR)


def answer_class(
    status_code: int, *, success_codes: frozenset[int] | None
) -> tuple[OutcomeClass, str]:
    """Return the class of an answer under a policy, and the error text, if any.

    An answer of 2xx outside the policy's `success_codes` counts as a server error: in the attempt,
    the figures, the URL's health and the verdict.
    """
    outcome = class_of(status_code)
    if outcome is not OutcomeClass.SUCCESS or success_codes is None or status_code in success_codes:
        return outcome, ""
    codes = ", ".join(map(str, sorted(success_codes)))
    return OutcomeClass.SERVER_ERROR, f"the policy counts only {codes} as success"


_CLASS_OF_HUNDRED = {
    2: OutcomeClass.SUCCESS,
    3: OutcomeClass.REDIRECT,
    4: OutcomeClass.CLIENT_ERROR,
}
