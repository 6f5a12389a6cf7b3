"""Queries such as `status:failed subscriber:shop-crm body:"1005" since:1h`, as filters of a list.

A condition is a key, a colon and a value; a value with spaces is in double quotes. The order does
not matter. Times are `90s`, `30m`, `1h`, `7d` or `2w` before now, or in ISO format.
"""

import re
from dataclasses import dataclass

from delivery.console.shared.input_filters import age_of
from delivery.console.shared.parameters import TAB
from delivery.console.shared.tabs import IN_DOUBT, TABS
from delivery.states import Status
from subscriptions.matching.typed_names import nearest
from subscriptions.values.times import TimeOutOfRangeError, parse_calculable_time

_PART = re.compile(
    r'(?P<key>[A-Za-z_]+):(?:"(?P<quoted>(?:[^"\\]|\\.)*)"?|(?P<value>\S*))|(?P<word>\S+)'
)
# Keys typed by people, and the parameters of the lists.
KEYS = {
    "status": "status",
    "subscriber": "subscriber",
    "subscription": "subscription",
    "event": "event_type",
    "event_type": "event_type",
    "type": "event_type",
    "publisher": "publisher",
    "message": "message",
    "header": "header",
    "body": "body",
    "since": "since",
    "until": "until",
}
SHOWN_KEYS = (
    "status, subscriber, subscription, event, publisher, message, header, body, since, until"
)
# The text before a colon in the name of a lane or in a URL is no key.
_NO_KEYS = ("queue", "retry", "callback", "http", "https")
_TABS = {tab.name: tab.name for tab in TABS if tab.name} | {"doubt": IN_DOUBT.name}
_STATUSES = {status.casefold(): status.value for status in Status}


class QueryError(Exception):
    """The query has a mistake; `detail` has the correction."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of a list by name, and the words without a key."""

    parameters: dict[str, str]
    words: str


def is_query(text: str) -> bool:
    """Return whether the text has at least one condition, complete or not, right or wrong."""
    return any(_is_condition(found) for found in _PART.finditer(text))


def parse_query(text: str) -> Query:
    """Return the conditions of the text; raise QueryError for a wrong key or value."""
    parameters: dict[str, str] = {}
    words: list[str] = []
    for found in _PART.finditer(text):
        if not _is_condition(found):
            words.append(found[0].strip('"'))
            continue
        key, value = found["key"].lower(), _value(found)
        if key not in KEYS:
            raise QueryError(_unknown_key(key))
        if not value:
            raise QueryError(f"Write a value after {key}: without a space, or in double quotes.")
        for name, parameter in _parameters(KEYS[key], value):
            if name in parameters:
                raise QueryError(f"{key}: is there twice. Give each condition once.")
            parameters[name] = parameter
    return Query(parameters, " ".join(words))


def _is_condition(found: re.Match[str]) -> bool:
    key, value = found["key"], found["value"]
    if key is None or key.lower() in _NO_KEYS:
        return False
    return not (value or "").startswith("//")


def _value(found: re.Match[str]) -> str:
    if found["quoted"] is None:
        return found["value"].strip()
    return re.sub(r"\\(.)", r"\1", found["quoted"])


def _parameters(name: str, value: str) -> list[tuple[str, str]]:
    match name:
        case "status":
            return [_status(value)]
        case "since" | "until":
            return [(name, _time(value))]
    return [(name, value)]


def _status(value: str) -> tuple[str, str]:
    """Return the parameter of a group, such as `failed`, or of a status, such as `FAILED`."""
    folded = value.casefold().replace("_", "-")
    if folded in _TABS and value not in Status.values:
        return TAB, _TABS[folded]
    status = _STATUSES.get(value.casefold()) or _STATUSES.get(folded.replace("-", "_"))
    if status is None:
        near = nearest(value, [*Status.values, *_TABS])
        hint = f" Did you mean {near}?" if near else ""
        raise QueryError(
            f"There is no status {value!r}.{hint} Statuses: failed, waiting, in-doubt, "
            f"{', '.join(Status.values)}."
        )
    return "status", status


def _time(value: str) -> str:
    """Return an age as it is, so a list's address keeps its meaning, or a time in UTC."""
    if age_of(value) is not None:
        return value.lower()
    try:
        return f"{parse_calculable_time(value):%Y-%m-%dT%H:%M:%S}"
    except TimeOutOfRangeError:
        raise QueryError(f"{value!r} is out of range.") from None
    except ValueError:
        raise QueryError(
            f"{value!r} is no time. Write 30m, 1h or 7d for that long ago, or 2026-11-26T08:15 "
            "(UTC)."
        ) from None


def _unknown_key(key: str) -> str:
    near = nearest(key, KEYS)
    hint = f" Did you mean {near}:?" if near else ""
    return f"There is no filter {key}:.{hint} Filters: {SHOWN_KEYS}."
