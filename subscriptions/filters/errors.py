"""Errors of a filter: their place, the reason, and the correction."""

import re
from collections.abc import Iterable

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

_CHARACTER_ADVICE = {
    "'": "this string has no closing quote; a quote inside a string is written twice: 'it''s'",
    '"': "strings and names are written in single quotes: 'like this'",
    "$": "the message is written $$, as in $$->'Body'->>'id'",
    "&": "write AND instead of &",
    "|": "write OR instead of |",
    ":": "casts are not needed: a number compares as a number, everything else as text",
    ".": "members are reached with ->, as in $$->'Body'->'id'",
    "!": "write NOT before a condition, or != for different",
}
_CHARACTER_ADVICE |= dict.fromkeys("‘’‚‛", _CHARACTER_ADVICE["'"]) | dict.fromkeys(
    "“”„", _CHARACTER_ADVICE['"']
)

# PostgreSQL accepts none of these, and no document can contain them.
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
# Searched in this order; the first match describes the possible next tokens.
_EXPECTATIONS = (
    ("ROOT", "a path beginning with $$, or a value"),
    ("STRING", "a name in single quotes or an index"),
    ("COMPARE", "an operator such as ->, =, in, like or is null"),
    ("AND", "AND or OR"),
    ("LIKE", "in or like"),
    ("NULL", "null or not null"),
    ("LPAR", "a list in parentheses"),
    ("RPAR", "a closing parenthesis"),
    ("$END", "the end of the filter"),
)
_EXCERPT = 40


class FilterError(ValueError):
    """Line and column count from 1 and are the place of the fault."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{message} (line {line}, column {column})")
        self.message = message
        self.line = line
        self.column = column


def error_at(token: Token, message: str) -> FilterError:
    return FilterError(message, token.line or 1, token.column or 1)


def refuse_unreadable(text: str, *, max_length: int) -> None:
    if not text.strip():
        raise FilterError("the filter is empty; leave it out to match every message", 1, 1)
    if len(text) > max_length:
        raise _at(text, max_length, f"the filter is longer than {max_length} characters")
    if found := _NOT_TEXT.search(text):
        raise _at(text, found.start(), "remove this character: it is not text")


def refuse_deep(tokens: Iterable[Token], *, max_depth: int) -> None:
    depth = 0
    for token in tokens:
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if depth > max_depth:
            raise error_at(token, f"more than {max_depth} parentheses inside each other")


def syntax_error(error: UnexpectedInput, text: str) -> FilterError:
    match error:
        case UnexpectedCharacters():
            advice = _CHARACTER_ADVICE.get(error.char, f"{error.char} has no meaning in a filter")
            return FilterError(advice, error.line, error.column)
        case UnexpectedToken(token=Token(type="$END")):
            return _at(
                text,
                len(text.rstrip()),
                f"the filter is not finished: {_expected(error)} is missing",
            )
        case UnexpectedToken():
            return error_at(error.token, _misplaced(error, text))
    return _at(text, len(text), "this is not a filter")


def _misplaced(error: UnexpectedToken, text: str) -> str:
    if text.startswith("==", (error.token.start_pos or 0) - 1):
        return "equality is written with a single ="
    if error.token.type == "RPAR" and "$END" in error.accepts:
        return "this parenthesis was never opened"
    return f"{excerpt(error.token)} is not allowed here: {_expected(error)} is expected"


def _expected(error: UnexpectedToken) -> str:
    if error.accepts == {"STRING"}:
        return "a time in single quotes"
    return next(phrase for terminal, phrase in _EXPECTATIONS if terminal in error.accepts)


def excerpt(token: Token) -> str:
    return token if len(token) <= _EXCERPT else f"{token[:_EXCERPT]}…"


def _at(text: str, offset: int, message: str) -> FilterError:
    before = text[:offset]
    return FilterError(message, before.count("\n") + 1, offset - before.rfind("\n"))
