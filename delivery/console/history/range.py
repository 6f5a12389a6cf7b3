"""What the charts of the history are asked for: a piece of time and whose deliveries, as an address has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from enum import StrEnum
from urllib.parse import urlencode

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Longer, and a page would be made of more rows than it can read while somebody waits.
LONGEST = 400 * DAY
LONGEST_NAME = 200


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
    """Whole hours from `since` to before `until`; an empty name is everybody's. `subscription` is an id or a name."""

    span: HistorySpan
    since: datetime
    until: datetime
    subscriber: str = ""
    subscription: str = ""
    event_type: str = ""

    @property
    def step(self) -> timedelta:
        """How much time a point of a chart has, so that there are at most some two hundred."""
        length = self.until - self.since
        return next(step for step, most in _STEPS if length <= most)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.subscriber or self.subscription or self.event_type)

    @property
    def spans(self) -> list[tuple[HistorySpan, str]]:
        """The ranges that are offered, each with its address."""
        named = {name: getattr(self, name) for name in ("subscriber", "subscription", "event_type")}
        kept = {name: value for name, value in named.items() if value}
        return [
            (span, f"?{urlencode({'span': span.value} | kept)}")
            for span in (HistorySpan.DAY, HistorySpan.WEEK, HistorySpan.MONTH)
        ]


_STEPS = ((HOUR, 8 * DAY), (6 * HOUR, 32 * DAY), (DAY, 200 * DAY), (7 * DAY, LONGEST))


def asked(given: Mapping[str, str], *, now: datetime) -> HistoryRange:
    """Read an address; what is wrong there counts as not given. A `since` or an `until` makes the range custom."""
    names = {
        name: given.get(name, "").strip().replace("\0", "")[:LONGEST_NAME]
        for name in ("subscriber", "subscription", "event_type")
    }
    since, until = _moment(given.get("since")), _moment(given.get("until"))
    span = HistorySpan.CUSTOM if since or until else _span(given.get("span"))
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


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    # At the ends of the calendar there is nothing to reckon with.
    if not MINYEAR + 1 < moment.year < MAXYEAR - 1:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _hour_after(moment: datetime) -> datetime:
    """Return the end of its hour; of a whole hour that hour itself would be past, so the next."""
    return moment.replace(minute=0, second=0, microsecond=0) + HOUR
