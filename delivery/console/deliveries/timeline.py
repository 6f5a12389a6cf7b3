"""The timeline of a delivery: publication, attempts, settlement, each with the time elapsed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from delivery.console.shared.labels import TONES
from delivery.models import Attempt, Delivery
from subscriptions.admin.shared.times import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One entry of a timeline.

    `name` is the text of its label and `tone` the label's colour; `after` is the time since the
    publication, such as `+2 min 5 s`, empty for the publication itself.
    """

    name: str
    tone: str
    words: str
    at: datetime
    after: str


def timeline(delivery: Delivery, attempts: Sequence[Attempt], *, is_fetched: bool) -> list[Moment]:
    """Return the entries, oldest first; `attempts` are the shown ones, newest first."""
    published_at = delivery.message.published_at
    moments = [Moment(name="published", tone="neutral", words="", at=published_at, after="")]
    noun = "fetch" if is_fetched else "attempt"
    for attempt in reversed(attempts):
        code = "" if attempt.status_code is None else f" {attempt.status_code}"
        words, after = f"{noun} {attempt.number}{code}", _after(attempt.started_at, published_at)
        tone = TONES.get(attempt.outcome, "bad")
        moments.append(
            Moment(name=attempt.outcome, tone=tone, words=words, at=attempt.started_at, after=after)
        )
    if delivery.settled_at is not None:
        after = _after(delivery.settled_at, published_at)
        tone = TONES.get(delivery.status, "neutral")
        moments.append(
            Moment(
                name=delivery.status,
                tone=tone,
                words="settled",
                at=delivery.settled_at,
                after=after,
            )
        )
    return moments


def _after(moment: datetime, published_at: datetime) -> str:
    span = max(moment - published_at, timedelta())
    if span < timedelta(seconds=1):
        return f"+{span // timedelta(milliseconds=1)} ms"
    return (
        f"+{duration(span)}" if span >= timedelta(seconds=10) else f"+{span.total_seconds():.1f} s"
    )
