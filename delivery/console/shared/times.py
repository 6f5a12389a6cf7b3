"""Times for people: relative or absolute, as a `<time>` with the exact UTC time on hover.

`static/console/times.js` adds the reader's local time.
"""

import re
from datetime import datetime, timedelta

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from subscriptions.values.times import duration, parse_time_or_none

_ABSOLUTE = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d{3})?)? UTC\b")


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
    """Return a `<time>` of a known day, such as `10:15:00 UTC`."""
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
    moment = parse_time_or_none(text) if "-" in text[4:5] else None
    return text if moment is None else _element(moment, text, has_local=True)


def exact(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"


def relative(moment: datetime, *, now: datetime) -> str:
    if moment > now:
        return f"in {duration(moment - now)}"
    return "now" if now - moment < timedelta(seconds=1) else f"{duration(now - moment)} ago"


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
