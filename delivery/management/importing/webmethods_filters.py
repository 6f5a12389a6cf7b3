"""Inturn's filters from the local filters of webMethods triggers.

Such a filter is `%address/state% == "VA" and %total% > 100`. It is translated to a syntax tree and
written by `normal_form`, so no value can end a string. The operators with `L_` compare text; the
others compare numbers by size if the value is a number. webMethods does not document how `!=`
treats a missing field: here the field differs from every value.
"""

import re
from collections.abc import Mapping
from decimal import Decimal

from subscriptions.filters import Condition, FilterError, normal_form, parse_filter
from subscriptions.filters.tree import (
    And,
    Comparison,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Path,
    Root,
)

DEEPEST = 30
_TOKEN = re.compile(
    r"""\s*(?:(?P<path>%[^%"']+%)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?![\w.]))
    |(?P<word>\$?[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||==|!=|<>|<=|>=|[=<>!&|()]))""",
    re.VERBOSE,
)
_STEP = re.compile(r"([^/\[\]]+)((?:\[[0-9]+\])*)")
_OPERATORS: Mapping[str, Operator] = {
    "=": Operator.EQUAL,
    "==": Operator.EQUAL,
    "l_equals": Operator.EQUAL,
    "!=": Operator.DIFFERENT,
    "<>": Operator.DIFFERENT,
    "l_not_equals": Operator.DIFFERENT,
    "<": Operator.LESS,
    "l_less_than": Operator.LESS,
    "<=": Operator.AT_MOST,
    "l_less_than_or_equals": Operator.AT_MOST,
    ">": Operator.GREATER,
    "l_greater_than": Operator.GREATER,
    ">=": Operator.AT_LEAST,
    "l_greater_than_or_equals": Operator.AT_LEAST,
}
_AND, _OR, _NOT = ("and", "&&", "&"), ("or", "||", "|"), ("not", "!")


class CannotTranslateError(ValueError):
    """The filter is none of these; the message says where."""


def translated_filter(text: str) -> str:
    """Return the filter for Inturn; raises CannotTranslateError."""
    reading = _Reading(text)
    tree = reading.alternatives(0)
    if reading.token != ("end", ""):
        raise reading.unexpected()
    found = normal_form(tree)
    try:
        parse_filter(found)
    except FilterError as error:
        raise CannotTranslateError(str(error)) from None
    return found


class _Reading:
    """Reads a filter from left to right; `token` is the next token: kind and text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = self._from = 0
        self.token = ("", "")
        self._advance()

    def unexpected(self) -> CannotTranslateError:
        rest = self._text[self._from :].strip()
        return CannotTranslateError(
            f"{rest[:50]!r} is not expected" if rest else "it ends too early"
        )

    def alternatives(self, depth: int) -> Condition:
        found = [self._conjunction(depth)]
        while self._take(*_OR):
            found.append(self._conjunction(depth))
        return found[0] if len(found) == 1 else Or(tuple(found))

    def _conjunction(self, depth: int) -> Condition:
        found = [self._negation(depth)]
        while self._take(*_AND):
            found.append(self._negation(depth))
        return found[0] if len(found) == 1 else And(tuple(found))

    def _negation(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise CannotTranslateError(f"it is nested deeper than {DEEPEST}")
        if self._take(*_NOT):
            return Not(self._negation(depth + 1))
        if not self._take("("):
            return self._comparison()
        inner = self.alternatives(depth + 1)
        if not self._take(")"):
            raise self.unexpected()
        return inner

    def _comparison(self) -> Condition:
        path = self._path()
        name = self.token[1].lower()
        if self.token[0] not in ("sign", "word") or name not in _OPERATORS:
            raise self.unexpected()
        self._advance()
        operator = _OPERATORS[name]
        if self._take("$null"):
            return _null(path, operator)
        operand = (
            self._path()
            if self.token[0] == "path"
            else self._literal(is_text=name.startswith("l_"))
        )
        compared = Comparison(path, operator, operand)
        return Or((IsNull(path), compared)) if operator == Operator.DIFFERENT else compared

    def _path(self) -> Path:
        kind, text = self.token
        parts = text.strip("%").strip().strip("/").split("/")
        found = [_STEP.fullmatch(part.strip()) for part in parts]
        if kind != "path" or not all(found):
            raise self.unexpected()
        self._advance()
        steps: list[str | int] = []
        for part in found:
            assert part is not None
            steps += [part[1], *map(int, re.findall(r"[0-9]+", part[2]))]
        return Path(Root.BODY, tuple(steps), is_text=True)

    def _literal(self, *, is_text: bool) -> Literal:
        kind, text = self.token
        if kind not in ("text", "number"):
            raise self.unexpected()
        self._advance()
        if kind == "text":
            return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
        return text if is_text else Decimal(text)

    def _take(self, *texts: str) -> bool:
        is_next = self.token[0] in ("sign", "word") and self.token[1].lower() in texts
        if is_next:
            self._advance()
        return is_next

    def _advance(self) -> None:
        self._from = self._next
        if not self._text[self._next :].strip():
            self.token = ("end", "")
            return
        match = _TOKEN.match(self._text, self._next)
        if match is None:
            raise self.unexpected()
        self._next = match.end()
        assert match.lastgroup is not None
        self.token = (match.lastgroup, match[match.lastgroup])


def _null(path: Path, operator: Operator) -> Condition:
    if operator == Operator.EQUAL:
        return IsNull(path)
    if operator == Operator.DIFFERENT:
        return Not(IsNull(path))
    raise CannotTranslateError("$null has no order")
