"""Lists of numbers in a policy as text, such as the successful status codes."""

import re
from collections.abc import Iterator

from django.core.exceptions import ValidationError

# Any answer of 2xx is a success.
ANY_SUCCESS = "2xx"
WEEK_SECONDS = 604_800
MOST_WAITS = 50
_SECONDS = re.compile(r"\d{1,6}(\.\d{1,3})?", re.ASCII)
_SUCCESS_CODE = re.compile(r"2\d\d", re.ASCII)


def success_codes(text: str) -> frozenset[int] | None:
    """Return the successful status codes; None for any 2xx."""
    return None if text == ANY_SUCCESS else frozenset(int(part) for part in _parts(text))


def check_success_codes(text: str) -> None:
    """Raise ValidationError unless the text is `2xx` or a list of status codes from 200 to 299."""
    if text == ANY_SUCCESS:
        return
    wrong = [part for part in _parts(text) if not _SUCCESS_CODE.fullmatch(part)]
    if wrong:
        raise ValidationError(
            f"“{wrong[0]}” cannot count as success. Write 2xx, or status codes from 200 to 299 "
            "separated by commas, such as 200,201."
        )


def seconds_listed(text: str) -> tuple[float, ...]:
    """Return the waits of a LISTED schedule."""
    return tuple(float(part) for part in _parts(text)) if text else ()


def check_seconds_listed(text: str) -> None:
    """Raise ValidationError unless the text is a list of seconds, each from 0.1 to a week."""
    parts = list(_parts(text))
    wrong = [
        part
        for part in parts
        if not (_SECONDS.fullmatch(part) and 0.1 <= float(part) <= WEEK_SECONDS)
    ]
    if wrong:
        raise ValidationError(
            f"“{wrong[0]}” is no wait. Write seconds from 0.1 to {WEEK_SECONDS} separated by "
            "commas, such as 5,300,1800."
        )
    if len(parts) > MOST_WAITS:
        raise ValidationError(f"These are {len(parts)} waits; at most {MOST_WAITS} are allowed.")


def _parts(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split(","))
