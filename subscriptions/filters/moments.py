"""Moments in texts: dates and times with an offset, as ISO 8601 and Workfront write them.

`2022-12-11T16:00:00.000-0800` and `2022-12-12T00:00:00Z` are the same moment. The years are 1000 to
2999, the fraction of a second has up to nine digits, of which six count. Python and PostgreSQL read
exactly the same texts: MOMENT_TEXT admits no date outside the calendar.
"""

import re
from datetime import UTC, datetime

_DATE = (
    "([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|02-(0[1-9]|1[0-9]|2[0-8]))"
    "|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)"
)
# Workfront's own API writes a colon before the fraction.
_FRACTION = "[.:][0-9]{1,9}"
_OFFSET = "(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])"
MOMENT_TEXT = f"{_DATE}T([01][0-9]|2[0-3])(:[0-5][0-9]){{2}}({_FRACTION})?{_OFFSET}"
# In PostgreSQL: the fraction as the cast reads it, without digits it would round.
FRACTION_EXPRESSION, FRACTION_REPLACEMENT = "^(.{19})[.:]([0-9]{1,6})[0-9]*", r"\1.\2"
_SECONDS_END = 19
_MOMENT = re.compile(MOMENT_TEXT)
_YEARS = range(1000, 3000)


def moment_of(text: str) -> datetime | None:
    """Return the moment in UTC; None if the text is none."""
    if not _MOMENT.fullmatch(text):
        return None
    seconds, rest = text[:_SECONDS_END], text[_SECONDS_END:]
    at = next(place for place, sign in enumerate(rest) if sign in "Z+-")
    fraction = f".{rest[1:at][:6]}" if at else ""
    return datetime.fromisoformat(seconds + fraction + rest[at:]).astimezone(UTC)


def moment_text(moment: datetime) -> str:
    """Return the text of a moment, the same for all spellings."""
    return moment.astimezone(UTC).isoformat()


def is_within_years(moment: datetime) -> bool:
    """Return whether `moment_text` gives a moment."""
    return moment.astimezone(UTC).year in _YEARS
