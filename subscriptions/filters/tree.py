r"""The syntax tree of the filter language, and the meaning of each node.

A filter is a condition over `$$`, the document of a message: `$$->'Header'` holds the headers, all
text, and `$$->'Body'` the body if it is JSON. A body other than JSON is missing, like any path to
nowhere. So is a body whose numbers, written out without exponents, take over a million characters
more than the body has bytes.

Every compiler (`to_python`, `to_sql`, `to_spark`) keeps these rules:

Logic
    SQL's three values: a missing path is null, a comparison with null is null,
    and a filter matches only if it is true. Nothing raises at run time.
Steps
    `->` and `->>` are PostgreSQL's: a name finds a member, an index an element, negative indexes
    count from the end, and a scalar is its own element 0 and -1. `->` keeps JSON's null, which is a
    value and not SQL's null; `->>` turns it into null and writes every other value as PostgreSQL
    prints jsonb.
`?` after `->`
    PostgreSQL's: a member's name, a text element, or the text itself.
`@>` after `->`
    PostgreSQL's: an object contains an object with some of the members, an array contains an array
    with some of the elements, in any order, or a single element, unless array or object; both as
    deep as the JSON on the right goes.
JSON (`->`) with = != in
    Equality of jsonb, so 1 = 1.0, key order is nothing and values of different types differ. A
    literal is the JSON value written by it.
JSON (`->`) with < <= > >=
    Two numbers by size and two strings by their UTF-8 bytes; everything else is
    null. PostgreSQL's total order of jsonb is not used, because it depends on the
    database's collation and makes true greater than 5.
Text (`->>`) with a string or another text
    Text under COLLATE "C": the order of the UTF-8 bytes.
Text (`->>`) with a number
    By size if the text is a JSON number of at most NUMBER_LENGTH characters and
    four digits of exponent; otherwise null.
Text (`->>`) with timestamptz '…'
    As moments if the text is a date and time with an offset (`moments`);
    otherwise null.
Text (`->>`) with true or false
    As booleans if the text is `true` or `false`; otherwise null.
`in`
    `x in (a, b)` is `x = a OR x = b`, and `not in` the negation.
`like`
    Text only: `%` any text, `_` a character, `\` takes the next literally.

`parse_filter` refuses conditions never true or without sense in PostgreSQL: JSON compared with text
or a moment, `<` with true or false, two literals compared, a step, `?` or `@>` after `->>`, `like`
on JSON.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

NUMBER_LENGTH = 1000
NUMBER_TEXT = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9][0-9]?[0-9]?[0-9]?)?"

Literal: TypeAlias = str | int | Decimal | bool | datetime | None


class LiteralKind(Enum):
    """The kind of a literal, which decides how a path is read before comparing."""

    NULL = "null"
    BOOLEAN = "boolean"
    NUMBER = "number"
    STRING = "string"
    MOMENT = "moment"


class Root(Enum):
    HEADER = "Header"
    BODY = "Body"


class Operator(Enum):
    EQUAL = "="
    DIFFERENT = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="

    @property
    def is_order(self) -> bool:
        return self not in (Operator.EQUAL, Operator.DIFFERENT)


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from a root; `is_text`: the last arrow was `->>`.

    The first step below the header is a `document.header_name`.
    """

    root: Root
    steps: tuple[str | int, ...]
    is_text: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A path compared with a literal, or two paths, both text or both JSON."""

    path: Path
    operator: Operator
    operand: Path | Literal


@dataclass(frozen=True, slots=True)
class Membership:
    path: Path
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Like:
    path: Path
    pattern: str


@dataclass(frozen=True, slots=True)
class Exists:
    path: Path
    key: str


@dataclass(frozen=True, slots=True)
class Contains:
    """`json` is the canonical text of the value (`jsonb.canonical_text`)."""

    path: Path
    json: str


@dataclass(frozen=True, slots=True)
class IsNull:
    path: Path


@dataclass(frozen=True, slots=True)
class Not:
    condition: "Condition"


@dataclass(frozen=True, slots=True)
class And:
    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    conditions: "tuple[Condition, ...]"


Leaf: TypeAlias = Comparison | Membership | Like | Exists | Contains | IsNull
Condition: TypeAlias = Leaf | Not | And | Or


def kind_of(literal: Literal) -> LiteralKind:
    match literal:
        case None:
            return LiteralKind.NULL
        case bool():
            return LiteralKind.BOOLEAN
        case str():
            return LiteralKind.STRING
        case datetime():
            return LiteralKind.MOMENT
        case _:
            return LiteralKind.NUMBER


def json_literal(literal: Literal) -> str | int | Decimal | bool | None:
    """Return a literal for comparisons with JSON; `parse_filter` refuses moments there."""
    assert not isinstance(literal, datetime)
    return literal


def literals_by_kind(
    literals: tuple[Literal, ...],
) -> list[tuple[LiteralKind, tuple[Literal, ...]]]:
    """Return the literals grouped by kind; `in` reads the path once for each kind."""
    return [
        (kind, members)
        for kind in LiteralKind
        if (members := tuple(literal for literal in literals if kind_of(literal) is kind))
    ]
