"""An event of a trace: a change of a message or of a delivery of it, with the time."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from delivery.console.shared.labels import TONES
from delivery.models import Delivery
from subscriptions.values.times import duration

_OF_A_JOB = re.compile(r" \(((?:resubmission|cancellation) \d+)\)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A line of the trace.

    `name` is the text of the label, `words` are Inturn's own and may name messages, deliveries and
    jobs, `detail` is text of others. Without a `delivery` it concerns the whole message.
    """

    at: datetime
    name: str
    tone: str = "neutral"
    words: str = ""
    detail: str = ""
    delivery: Delivery | None = None

    @property
    def text(self) -> str:
        return ": ".join(filter(None, [self.words, self.detail]))

    def after(self, published_at: datetime) -> str:
        """Return the time since the publication, such as `+2 min 5 s`; empty at this moment."""
        span = max(self.at - published_at, timedelta())
        if not span:
            return ""
        if span < timedelta(seconds=1):
            return f"+{span // timedelta(milliseconds=1)} ms"
        return (
            f"+{duration(span)}"
            if span >= timedelta(seconds=10)
            else f"+{span.total_seconds():.1f} s"
        )


def tone_of(name: str, *, otherwise: str = "neutral") -> str:
    return TONES.get(name, otherwise)


def reason_in_words(reason: str) -> str:
    """Return a reason with the job as part of a sentence: `cancelled by sue, in cancellation 2`."""
    return _OF_A_JOB.sub(r", in \1", reason)
