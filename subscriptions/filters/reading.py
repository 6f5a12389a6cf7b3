"""How `to_python` reads a value before comparing it, by the kind of the other side."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from subscriptions.filters.jsonb import Json, Missing, text_of
from subscriptions.filters.tree import NUMBER_LENGTH, NUMBER_TEXT, Kind, Path

Comparable: TypeAlias = str | int | Decimal | bool
Reader: TypeAlias = Callable[[Json | Missing], Comparable | None]

_NUMBER = re.compile(NUMBER_TEXT)
_CERTAINLY_SHORT = 10**18


def reader(path: Path, kind: Kind) -> Reader:
    """None stands for null: the value cannot be compared with a literal of this kind."""
    return (_TEXT_READERS if path.is_text else _JSON_READERS)[kind]


def comparable_pair(left: Json | Missing, right: Json | Missing) -> tuple[Any, Any] | None:
    """Both as they are if JSON gives them an order: two numbers or two strings."""
    for read in _JSON_READERS.values():
        if read(left) is not None and read(right) is not None:
            return left, right
    return None


def like_pattern(pattern: str) -> re.Pattern[str]:
    """For `fullmatch`. Takes at most the time of pattern times text, whatever they are."""
    first, *others = _between_percents(pattern)
    if not others:
        return re.compile(first, re.DOTALL)
    *inner, last = others
    # Pieces have a fixed length, so the first place where one fits is never worse than
    # a later one: atomic groups give up the backtracking that would take for ever.
    found = "".join(f"(?>.*?{piece})" for piece in inner if piece)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)


def _between_percents(pattern: str) -> list[str]:
    pieces = [""]
    for escaped, character in re.findall(r"(\\?)(.)", pattern, re.DOTALL):
        if escaped or character not in "%_":
            pieces[-1] += re.escape(character)
        elif character == "_":
            pieces[-1] += "."
        else:
            pieces.append("")
    return pieces


def _number_in_text(value: Json | Missing) -> int | Decimal | None:
    if type(value) is int and -_CERTAINLY_SHORT < value < _CERTAINLY_SHORT:
        return value
    text = text_of(value)
    if text is None or len(text) > NUMBER_LENGTH or not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _truth_in_text(value: Json | Missing) -> bool | None:
    return {"true": True, "false": False}.get(text_of(value) or "")


def _number_in_json(value: Json | Missing) -> int | Decimal | None:
    return value if type(value) is int or type(value) is Decimal else None


def _string_in_json(value: Json | Missing) -> str | None:
    return value if type(value) is str else None


_TEXT_READERS: dict[Kind, Reader] = {
    Kind.STRING: text_of,
    Kind.NUMBER: _number_in_text,
    Kind.BOOLEAN: _truth_in_text,
}
_JSON_READERS: dict[Kind, Reader] = {
    Kind.STRING: _string_in_json,
    Kind.NUMBER: _number_in_json,
}
