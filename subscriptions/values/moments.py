"""Times as people and clients write them, in ISO 8601."""

import re
from datetime import datetime

# An address has a space for an unencoded plus: since=2026-11-01T00:00:00+01:00.
_SPACE_FOR_PLUS = re.compile(
    r"(\d{4}-?\d\d-?\d\d[T ]\d\d(?::?\d\d){0,2}(?:[.,]\d+)?) (\d\d(?::?\d\d){0,2})"
)


def with_plus(text: str) -> str:
    """Return a time with the plus of its offset, if a space stands there; other texts unchanged."""
    return _SPACE_FOR_PLUS.sub(r"\1+\2", text) if _SPACE_FOR_PLUS.fullmatch(text) else text


def parse_moment(text: str) -> datetime:
    """Parse a time of an address, with or without an offset; raise ValueError."""
    return datetime.fromisoformat(with_plus(text))
