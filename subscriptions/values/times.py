"""Times as people and clients write them, in ISO 8601, and as Inturn writes times for people."""

import re
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta

# An address has a space for an unencoded plus: since=2026-11-01T00:00:00+01:00.
_SPACE_FOR_PLUS = re.compile(
    r"(\d{4}-?\d\d-?\d\d[T ]\d\d(?::?\d\d){0,2}(?:[.,]\d+)?) (\d\d(?::?\d\d){0,2})"
)
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
# Units with the seconds from which a rounded span is written in them.
_ROUNDED_UNITS = ((86_400, "d", 72 * 3600), (3600, "h", 120 * 60), (60, "min", 120))


def with_plus(text: str) -> str:
    """Return a time with the plus of the offset, if a space stands there; other texts unchanged."""
    return _SPACE_FOR_PLUS.sub(r"\1+\2", text) if _SPACE_FOR_PLUS.fullmatch(text) else text


class TimeOutOfRangeError(ValueError):
    """The text is a time, at an end of the calendar."""


def parse_time(text: str) -> datetime:
    """Return a time in UTC, which a time without an offset has; raise ValueError."""
    moment = datetime.fromisoformat(with_plus(text))
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise TimeOutOfRangeError(f"{text} is out of range") from None


def parse_calculable_time(text: str) -> datetime:
    """Return a time in UTC to which years can be added; raise ValueError for any other text."""
    moment = parse_time(text)
    if not MINYEAR + 1 < moment.year < MAXYEAR - 1:
        raise TimeOutOfRangeError(f"{text} is out of range")
    return moment


def parse_time_or_none(text: str | None) -> datetime | None:
    """Return the time of `parse_calculable_time`; None for any other text, and for none."""
    try:
        return parse_calculable_time(text or "")
    except ValueError:
        return None


def time_text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(span: timedelta) -> str:
    """Return the largest unit, and the next while it matters: `2 h 5 min`, `3 d`."""
    seconds = max(int(span.total_seconds()), 0)
    position = next((i for i, (size, _) in enumerate(_UNITS) if seconds >= size), len(_UNITS) - 1)
    size, unit = _UNITS[position]
    count, rest = divmod(seconds, size)
    # Only below ten of a unit does the next smaller unit matter.
    if count >= 10 or unit == "s":
        return f"{count} {unit}"
    smaller, smaller_unit = _UNITS[position + 1]
    return (
        f"{count} {unit} {rest // smaller} {smaller_unit}" if rest // smaller else f"{count} {unit}"
    )


def largest_unit(span: timedelta) -> str:
    """Return the largest unit only: `2 h`."""
    return " ".join(duration(span).split()[:2])


def rounded_duration(seconds: float) -> str:
    """Return a suitable unit: `0.5 s`, `85 s`, `10 min`, `48 h`, `4 d`."""
    for size, unit, from_seconds in _ROUNDED_UNITS:
        if seconds >= from_seconds:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.3g} s" if seconds < 10 else f"{seconds:.0f} s"
