"""Headers as typed by people, one `Name: value` per line; stored values are never shown again."""

from collections.abc import Mapping

from subscriptions.changes import MASKED
from subscriptions.values.header_values import HeaderError


def masked_lines(headers: Mapping[str, str]) -> str:
    """Return a line per header, with the value masked."""
    return "\n".join(f"{name}: {MASKED}" for name in headers)


def parse_header_lines(text: str, *, stored: Mapping[str, str]) -> dict[str, str]:
    """Parse the lines; a masked value keeps the stored value.

    Raises HeaderError with the line's number.
    """
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not name:
            raise HeaderError(f"Line {number} is not a header; write it as Name: value.")
        if name.lower() in (known.lower() for known in headers):
            raise HeaderError(
                f"Line {number}: {name} occurs twice; upper and lower case do not matter in names."
            )
        headers[name] = _unmasked(name, value, stored=stored, number=number)
    return headers


def kept_names(text: str) -> list[str]:
    """Return the names of the headers whose lines have a masked value."""
    pairs = [line.partition(":") for line in text.splitlines()]
    return [name.strip() for name, _, value in pairs if value.strip() == MASKED]


def _unmasked(name: str, value: str, *, stored: Mapping[str, str], number: int) -> str:
    if value != MASKED:
        return value
    if name not in stored:
        raise HeaderError(
            f"Line {number}: no value of {name} is stored; write its value instead of {MASKED}."
        )
    return stored[name]
