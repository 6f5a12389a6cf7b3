"""The query of the history's charts: an interval and names, as read from the page's address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlencode

from subscriptions.values.times import parse_time_or_none

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# A longer interval has more rows than a page can read within a request.
LONGEST = 400 * DAY
LONGEST_NAME = 401


class HistorySpan(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    CUSTOM = "custom"

    @property
    def length(self) -> timedelta:
        return _LENGTHS[self]

    @property
    def words(self) -> str:
        return _WORDS[self]


_LENGTHS = {
    HistorySpan.DAY: DAY,
    HistorySpan.WEEK: 7 * DAY,
    HistorySpan.MONTH: 30 * DAY,
    HistorySpan.CUSTOM: 90 * DAY,
}
_WORDS = {
    HistorySpan.DAY: "24 hours",
    HistorySpan.WEEK: "7 days",
    HistorySpan.MONTH: "30 days",
    HistorySpan.CUSTOM: "custom",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRange:
    """Whole hours from `since` up to, not including, `until`.

    An empty name selects all. `subscription` is an id, a name or `subscriber/subscription`.
    """

    span: HistorySpan
    since: datetime
    until: datetime
    subscriber: str = ""
    subscription: str = ""
    event_type: str = ""

    @property
    def step(self) -> timedelta:
        """The time of a point of a chart; a chart has at most about 200 points."""
        length = self.until - self.since
        return next(step for step, most in _STEPS if length <= most)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.subscriber or self.subscription or self.event_type)

    @property
    def spans(self) -> list[tuple[HistorySpan, str]]:
        """The ranges on offer, each with an address."""
        named = {name: getattr(self, name) for name in ("subscriber", "subscription", "event_type")}
        kept = {name: value for name, value in named.items() if value}
        return [
            (span, f"?{urlencode({'span': span.value} | kept)}")
            for span in (HistorySpan.DAY, HistorySpan.WEEK, HistorySpan.MONTH)
        ]


_STEPS = ((HOUR, 8 * DAY), (6 * HOUR, 32 * DAY), (DAY, 200 * DAY), (7 * DAY, LONGEST))


def requested_range(parameters: Mapping[str, str], *, now: datetime) -> HistoryRange:
    """Read the query from an address; ignore invalid values.

    A `since` or an `until` makes the range custom.
    """
    names = {
        name: parameters.get(name, "").strip().replace("\0", "")[:LONGEST_NAME]
        for name in ("subscriber", "subscription", "event_type")
    }
    since, until = (parse_time_or_none(parameters.get(name)) for name in ("since", "until"))
    span = HistorySpan.CUSTOM if since or until else _span(parameters.get("span"))
    end = _hour_after(min(until or now, now + DAY))
    begin = _hour_after(since) - HOUR if since else end - span.length
    begin = max(min(begin, end - HOUR), end - LONGEST)
    return HistoryRange(span=span, since=begin, until=end, **names)


def _span(text: str | None) -> HistorySpan:
    return (
        HistorySpan(text)
        if text in (HistorySpan.DAY, HistorySpan.WEEK, HistorySpan.MONTH)
        else HistorySpan.WEEK
    )


def _hour_after(moment: datetime) -> datetime:
    """Return the end of the moment's hour.

    For a whole hour it is the next hour: an end of 10:00 would exclude the hour from 10:00.
    """
    return moment.replace(minute=0, second=0, microsecond=0) + HOUR
