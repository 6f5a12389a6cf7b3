"""The parts of a filter during parsing, each with the token for errors."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypeAlias

from lark import Token

from subscriptions.filters import jsonb
from subscriptions.filters.document import header_name
from subscriptions.filters.errors import FilterError, error_at
from subscriptions.filters.moments import is_within_years, moment_of
from subscriptions.filters.tree import Condition, Literal, Path, Root

_MAX_DIGITS = 1000
# Each element of the JSON in a filter may be compared with each of the message.
_MAX_ELEMENTS = 100
_MAX_JSON_LENGTH = 10_000
_JSON_ADVICE = (
    "@> takes JSON in single quotes, with texts in double quotes: "
    "@> '\"low\"' or @> '[{\"id\": 7}]'"
)
_INDEXES = range(-(2**31), 2**31)
_KEYWORDS: dict[str, Literal] = {"TRUE": True, "FALSE": False, "NULL": None}


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """`$$` itself, which is a value only after a root has been selected."""


@dataclass(frozen=True, slots=True)
class WrittenLiteral:
    """A literal in the filter, as distinct from paths and conditions."""

    value: Literal


Value: TypeAlias = Path | WrittenLiteral


@dataclass(frozen=True, slots=True)
class ExpressionPart:
    """An expression and the first token."""

    of: Condition | Value | WholeDocument
    token: Token

    def refusal(self, message: str) -> FilterError:
        return error_at(self.token, message)


def literal_of(token: Token) -> Literal:
    match token.type:
        case "STRING":
            inner = token[1:-1]
            return inner.replace("''", "'") if token[0] == "'" else inner
        case "NUMBER":
            return _number(token)
        case keyword:
            return _KEYWORDS[keyword]


def moment_literal(token: Token) -> datetime:
    found = moment_of(str(literal_of(token)))
    if found is None or not is_within_years(found):
        raise error_at(
            token,
            "this is not a date and time with an offset, such as '2022-12-11T16:00:00-08:00', "
            "of the years 1000 to 2999",
        )
    return found


def contained_json(part: ExpressionPart) -> str:
    """Return the canonical text of the JSON in a string."""
    text = _written(part)
    if not isinstance(text, str):
        raise part.refusal(_JSON_ADVICE)
    value = jsonb.parse_jsonb(text.encode())
    if isinstance(value, jsonb.Missing):
        raise part.refusal(_JSON_ADVICE)
    canonical = jsonb.canonical_text(value)
    if _elements(value) > _MAX_ELEMENTS or len(canonical) > _MAX_JSON_LENGTH:
        raise part.refusal(
            f"this JSON has more than {_MAX_ELEMENTS} elements of arrays or, with its numbers "
            f"written out, {_MAX_JSON_LENGTH} characters"
        )
    return canonical


def _elements(value: jsonb.Json) -> int:
    match value:
        case dict():
            return sum(map(_elements, value.values()))
        case list():
            return len(value) + sum(map(_elements, value))
    return 0


def _number(token: Token) -> int | Decimal:
    """Return the same value for 5, 5.0 and 50e-1: equal filters have equal trees."""
    exponent = token.lower().partition("e")[2].lstrip("+-0")
    if len(exponent) > 4 or len(token) + int(exponent or 0) > _MAX_DIGITS:
        raise error_at(token, f"this number needs more than {_MAX_DIGITS} digits")
    digits = format(Decimal(token), "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return Decimal(digits) if "." in digits else int(digits)


def condition_of(part: ExpressionPart) -> Condition:
    match part.of:
        case Path() | WholeDocument():
            raise part.refusal(
                "this is a value, not a condition; compare it, as in … = 'x' or … is not null"
            )
        case WrittenLiteral():
            raise part.refusal("this is a literal, not a condition; compare a path with it")
        case condition:
            return condition


def value_of(part: ExpressionPart) -> Value:
    match part.of:
        case Path() | WrittenLiteral() as value:
            return value
        case WholeDocument():
            raise part.refusal("$$ holds 'Header' and 'Body'; continue with ->'Header' or ->'Body'")
        case _:
            raise part.refusal("this is a condition, not a value; join conditions with AND or OR")


def path_of(part: ExpressionPart, subject: str) -> Path:
    match value_of(part):
        case Path() as path:
            return path
        case WrittenLiteral():
            raise part.refusal(f"{subject} needs a path that begins with $$")


def next_path(left: ExpressionPart, arrow: Token, step: ExpressionPart) -> Path:
    is_text = arrow.type == "TEXT_ARROW"
    if isinstance(left.of, WholeDocument):
        return Path(_root(step), (), is_text)
    path = path_of(left, arrow)
    if path.is_text:
        raise error_at(
            arrow, "->> gives text, which has no members; use -> for every step but the last"
        )
    if len(path.steps) == jsonb.MAX_DEPTH:
        raise error_at(
            arrow, f"more than {jsonb.MAX_DEPTH} steps, and no message is nested as deep"
        )
    return Path(path.root, (*path.steps, step_behind(path, step)), is_text)


def step_behind(path: Path, step: ExpressionPart) -> str | int:
    name = _written(step)
    match name:
        case str():
            return header_name(name) if path.root is Root.HEADER and not path.steps else name
        case int() if name in _INDEXES and step.token.lstrip("-").isdigit():
            return name
    raise step.refusal("a step is a name in single quotes or a whole number")


def _root(step: ExpressionPart) -> Root:
    try:
        return Root(_written(step))
    except ValueError:
        raise step.refusal("$$ holds 'Header' and 'Body', written exactly so") from None


def _written(part: ExpressionPart) -> Literal:
    assert isinstance(part.of, WrittenLiteral)
    return part.of.value
