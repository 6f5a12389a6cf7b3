"""Times for people: relative or absolute, as a `<time>` with the exact UTC time on hover.

`static/console/times.js` adds the reader's local time.
"""

import re
from datetime import UTC, datetime, timedelta

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from subscriptions.values.moments import parse_moment

_ABSOLUTE = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d{3})?)? UTC\b")
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def ago(moment: datetime | None, *, now: datetime) -> SafeString | str:
    """Return a `<time>` such as `3 min ago` or `in 12 s`, and `–` for None."""
    return "–" if moment is None else _element(moment, relative(moment, now=now))


def due(moment: datetime | None, *, now: datetime) -> SafeString | str:
    """Return a `<time>` for a future event, which is `now` once it is due."""
    return "–" if moment is None else _element(moment, relative(max(moment, now), now=now))


def stamp(moment: datetime) -> SafeString:
    """Return a `<time>` to the millisecond, with the local time beside it."""
    return _element(moment, exact(moment), has_local=True)


def minute(moment: datetime) -> SafeString:
    """Return a `<time>` such as `2026-11-22 10:15 UTC`, with the local time beside it."""
    return _element(moment, f"{moment:%Y-%m-%d %H:%M} UTC", has_local=True)


def clock(moment: datetime) -> SafeString:
    """Return a `<time>` of a day that is known, such as `10:15:00 UTC`."""
    return _element(moment, f"{moment:%H:%M:%S} UTC")


def with_times(text: str) -> SafeString:
    """Return the text, escaped, with each UTC time in it as a `<time>`; marked-up text unchanged.

    The text has them as `exact` and `minute` write them.
    """
    if isinstance(text, SafeString):
        return text
    parts: list[str] = []
    end = 0
    for found in _ABSOLUTE.finditer(text):
        parts += [escape(text[end : found.start()]), _marked(found[0])]
        end = found.end()
    # Each part is escaped.
    return mark_safe("".join([*parts, escape(text[end:])]))  # noqa: S308


def marked_up_time(text: str) -> SafeString | str:
    """Return a typed time, of UTC unless it has an offset, with the local time beside it.

    Return any other text unchanged, a number such as 20261126 too.
    """
    try:
        moment = parse_moment(text) if "-" in text[4:5] else None
        if moment is None:
            return text
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return text
    return _element(moment, text, has_local=True)


def exact(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"


def relative(moment: datetime, *, now: datetime) -> str:
    if moment > now:
        return f"in {duration(moment - now)}"
    return "now" if now - moment < timedelta(seconds=1) else f"{duration(now - moment)} ago"


def largest_unit(span: timedelta) -> str:
    """Return the largest unit only: `2 h`."""
    position, count, _ = _in_largest_unit(span)
    return f"{count} {_UNITS[position][1]}"


def duration(span: timedelta) -> str:
    """Return the largest unit, and the next one while that matters: `2 h 5 min`, `3 d`."""
    position, count, rest = _in_largest_unit(span)
    unit = _UNITS[position][1]
    # Only below ten of a unit does the next smaller one matter.
    if count >= 10 or unit == "s":
        return f"{count} {unit}"
    smaller, smaller_unit = _UNITS[position + 1]
    return (
        f"{count} {unit} {rest // smaller} {smaller_unit}" if rest // smaller else f"{count} {unit}"
    )


def _in_largest_unit(span: timedelta) -> tuple[int, int, int]:
    """Return the index of the unit in _UNITS, its count, and the remaining seconds."""
    seconds = max(int(span.total_seconds()), 0)
    position = next((i for i, (size, _) in enumerate(_UNITS) if seconds >= size), len(_UNITS) - 1)
    return position, *divmod(seconds, _UNITS[position][0])


def _marked(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    except ValueError:
        return escape(text)
    return _element(moment, text, has_local=True)


def _element(moment: datetime, text: str, *, has_local: bool = False) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}" class="inturn-time"{}>{}</time>',
        moment.isoformat(),
        exact(moment),
        SafeString(" data-local") if has_local else "",
        text,
    )
