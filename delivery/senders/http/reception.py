"""The reception of an answer: how far it is read, and its outcome."""

import logging
from collections.abc import Awaitable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

from delivery.outcome import EXCERPT_BYTES, Outcome, answer_class
from delivery.senders.http.answer import BegunAnswer
from delivery.states import OutcomeClass

log = logging.getLogger(__name__)

# Bodies of answers are read up to here, and for so long after their header.
READ_BYTES = 64 * 1024
READ_SECONDS = 1.0
# Of a date with a comment; a proper date has 29 characters.
_LONGEST_DATE = 100


class Reception:
    """The receiver's part of an outcome."""

    __slots__ = ("error", "excerpt", "outcome", "retry_after_seconds", "status_code")

    def __init__(
        self, outcome: OutcomeClass, *, status_code: int | None = None, error: str = ""
    ) -> None:
        self.outcome = outcome
        self.status_code = status_code
        self.error = error
        self.excerpt = b""
        self.retry_after_seconds: float | None = None

    def outcome_at(self, started_at: datetime, *, duration_ms: int) -> Outcome:
        return Outcome(
            outcome=self.outcome,
            started_at=started_at,
            duration_ms=duration_ms,
            status_code=self.status_code,
            error=self.error,
            excerpt=self.excerpt,
            retry_after_seconds=self.retry_after_seconds,
        )


class Read(Protocol):
    """Reads an answer as far as the caller needs it, and judges it."""

    def __call__(
        self, answer: BegunAnswer, *, success_codes: frozenset[int] | None
    ) -> Awaitable[Reception]: ...


async def read_safely(
    read: Read, answer: BegunAnswer, *, success_codes: frozenset[int] | None
) -> Reception:
    """Read an answer; it keeps its status whatever happens: the receiver has judged the message."""
    try:
        return await read(answer, success_codes=success_codes)
    except Exception:
        log.exception("an answer of status %s counts, but cannot be read", answer.status)
        return judged(answer, b"", success_codes=success_codes)


def judged(answer: BegunAnswer, body: bytes, *, success_codes: frozenset[int] | None) -> Reception:
    """Judge an answer by its status alone; what is malformed in it is noted."""
    outcome, error = answer_class(answer.status, success_codes=success_codes)
    note = answer.note
    error = f"{error}; {note}" if error and note else error or note
    reception = Reception(outcome, status_code=answer.status, error=error)
    reception.excerpt = body[:EXCERPT_BYTES]
    return reception


async def read_beginning(answer: BegunAnswer, *, is_kept: bool = True) -> bytes:
    """Read a short body to its end, which keeps the connection; the status decides without it.

    Does not wait for a body that nobody keeps, unless its end is announced: the receiver might
    leave the connection open.
    """
    waits = answer.has_announced_end or (is_kept and answer.has_usable_body)
    body, _ = await answer.read(READ_BYTES, seconds=READ_SECONDS if waits else 0.0)
    return body


def retry_after(value: str, *, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110, 10.2.3); None if invalid."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        # A number of any length is allowed; the policy bounds it.
        return float(value[:12])
    if len(value) > _LONGEST_DATE:
        return None
    try:
        moment = parsedate_to_datetime(value)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max((aware - now).total_seconds(), 0.0)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        # OverflowError, for example, of a year or an offset with many digits.
        return None
