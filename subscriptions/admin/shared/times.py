"""Times for people: relative, with the exact UTC time on hover."""

from datetime import datetime, timedelta

from django.utils.html import format_html
from django.utils.safestring import SafeString

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def ago(moment: datetime | None, *, now: datetime) -> SafeString | str:
    """Return a `<time>` such as `3 min ago` or `in 12 s`, and `–` for None."""
    return "–" if moment is None else _element(moment, relative(moment, now=now))


def due(moment: datetime | None, *, now: datetime) -> SafeString | str:
    """Return a `<time>` for a future event, which is `now` once it is due."""
    return "–" if moment is None else _element(moment, relative(max(moment, now), now=now))


def exact(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"


def relative(moment: datetime, *, now: datetime) -> str:
    if moment > now:
        return f"in {duration(moment - now)}"
    return "now" if now - moment < timedelta(seconds=1) else f"{duration(now - moment)} ago"


def roughly(span: timedelta) -> str:
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


def _element(moment: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}" class="inturn-time">{}</time>',
        moment.isoformat(),
        exact(moment),
        text,
    )
