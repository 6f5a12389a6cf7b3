"""Readers of `to_python`: they convert a value for a comparison, by the other operand's kind."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from subscriptions.filters.document import Document
from subscriptions.filters.jsonb import Json, Missing, text_of
from subscriptions.filters.moments import moment_of
from subscriptions.filters.tree import NUMBER_LENGTH, NUMBER_TEXT, Literal, LiteralKind, Path

Comparable: TypeAlias = str | int | Decimal | bool | datetime
Reader: TypeAlias = Callable[[Document, Json | Missing], Comparable | None]

_NUMBER = re.compile(NUMBER_TEXT)
_CERTAINLY_SHORT = 10**18


def reader(path: Path, kind: LiteralKind, literals: Iterable[Literal]) -> Reader:
    """Return the reader of a value to compare with these literals of the same kind.

    A reader returns None for null: the value cannot be compared with a literal of this kind.
    """
    if not path.is_text:
        return _JSON_READERS[kind]
    if kind is LiteralKind.STRING and any(
        str(literal).startswith(("{", "[")) for literal in literals
    ):
        return Document.text_of
    return _TEXT_READERS[kind]


def comparable_pair(left: Json | Missing, right: Json | Missing) -> tuple[Any, Any] | None:
    """Return both values if JSON orders them, two numbers or two strings; otherwise None."""
    for read in (_number, _string):
        if read(left) is not None and read(right) is not None:
            return left, right
    return None


def _beginning(_document: Document, value: Json | Missing) -> str | None:
    """Return the text, or a container's first character.

    A single character is enough against literals with another beginning.
    """
    if type(value) is dict:
        return "{"
    return "[" if type(value) is list else text_of(value)


def _number_in_text(_document: Document, value: Json | Missing) -> int | Decimal | None:
    if type(value) is int and -_CERTAINLY_SHORT < value < _CERTAINLY_SHORT:
        return value
    text = None if type(value) is dict or type(value) is list else text_of(value)
    if text is None or len(text) > NUMBER_LENGTH or not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _boolean_in_text(_document: Document, value: Json | Missing) -> bool | None:
    if type(value) is str:
        return {"true": True, "false": False}.get(value)
    return value if type(value) is bool else None


def _moment_in_text(_document: Document, value: Json | Missing) -> datetime | None:
    return moment_of(value) if type(value) is str else None


def _number_in_json(_document: Document, value: Json | Missing) -> int | Decimal | None:
    return _number(value)


def _string_in_json(_document: Document, value: Json | Missing) -> str | None:
    return _string(value)


def _number(value: Json | Missing) -> int | Decimal | None:
    return value if type(value) is int or type(value) is Decimal else None


def _string(value: Json | Missing) -> str | None:
    return value if type(value) is str else None


_TEXT_READERS: dict[LiteralKind, Reader] = {
    LiteralKind.STRING: _beginning,
    LiteralKind.NUMBER: _number_in_text,
    LiteralKind.BOOLEAN: _boolean_in_text,
    LiteralKind.MOMENT: _moment_in_text,
}
_JSON_READERS: dict[LiteralKind, Reader] = {
    LiteralKind.STRING: _string_in_json,
    LiteralKind.NUMBER: _number_in_json,
}
