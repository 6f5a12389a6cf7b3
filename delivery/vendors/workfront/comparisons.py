"""The comparisons of Workfront in the filter language.

`path` is the field as text (`->>`). Workfront documents each comparison in a sentence; numbers in
texts and missing fields are not documented. Here a text that is a number compares by size, and a
field that is missing or null differs from every value and contains none.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

from subscriptions.filters import Condition
from subscriptions.filters.tree import (
    NUMBER_TEXT,
    And,
    Comparison,
    Exists,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Path,
)

DEEPEST = 20
_NUMBER = re.compile(NUMBER_TEXT)
Paths: TypeAlias = tuple[Path, ...]
# The steps to a value, and the value.
Leaf: TypeAlias = tuple[tuple[str, ...], Any]


class CannotSayError(Exception):
    """The field of the filter that cannot be translated, with the reason."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Comparing:
    """A comparison.

    `of` makes the condition from paths and a value: one path, but for `changed` the new one and the
    old one. `differs` describes how the result may differ from Workfront's.
    """

    of: Callable[[Paths, Any], Condition]
    differs: str = ""


def nested_values(name: str, value: Any) -> list[Leaf]:
    """Return the steps to each value: in an object, fieldValue names fields within the field."""
    leaves: list[Leaf] = []
    level: list[Leaf] = [((name,), value)]
    for _ in range(DEEPEST):
        leaves += [(steps, one) for steps, one in level if not isinstance(one, dict)]
        if any(one == {} for _, one in level):
            raise CannotSayError(
                "fieldValue", "An object names fields within the field; this one is empty."
            )
        level = [
            ((*steps, inner), deeper)
            for steps, one in level
            if isinstance(one, dict)
            for inner, deeper in one.items()
        ]
        if not level:
            return leaves
    raise CannotSayError("fieldValue", f"Objects are nested deeper than {DEEPEST}.")


def _equal(paths: Paths, value: Any) -> Condition:
    (path,) = paths
    return IsNull(path) if value is None else Comparison(path, Operator.EQUAL, _literal(value))


def _different(paths: Paths, value: Any) -> Condition:
    (path,) = paths
    if value is None:
        return Not(IsNull(path))
    return Or((IsNull(path), Comparison(path, Operator.DIFFERENT, _literal(value))))


def _ordered(operator: Operator) -> Callable[[Paths, Any], Condition]:
    def compare(paths: Paths, value: Any) -> Condition:
        (path,) = paths
        literal = _literal(value)
        if value is None or isinstance(value, bool):
            raise CannotSayError("fieldValue", "Only numbers and texts have an order.")
        if isinstance(literal, str) and _NUMBER.fullmatch(literal) and len(literal) <= 100:
            literal = Decimal(literal)
        return Comparison(path, operator, literal)

    return compare


def _contains(paths: Paths, value: Any) -> Condition:
    (path,) = paths
    return Like(path, _pattern(value))


def _contains_not(paths: Paths, value: Any) -> Condition:
    (path,) = paths
    values = value if isinstance(value, list) else [value]
    if not values:
        raise CannotSayError("fieldValue", "Give a text, or an array with at least one.")
    absent = [Not(Like(path, _pattern(one))) for one in values]
    return Or((IsNull(path), And(tuple(absent)) if len(absent) > 1 else absent[0]))


def _contains_only(paths: Paths, value: Any) -> Condition:
    """Return a condition for an array with exactly these elements, in any order.

    It must have as many elements as the set has, and each of them; a single value counts as an
    array of one.
    """
    path = replace(paths[0], is_text=False)
    given = [value] if isinstance(value, str) else value
    if not _are_texts(given) or not given:
        raise CannotSayError(
            "fieldValue",
            "Give a text or an array of texts; Inturn looks for nothing else in an array.",
        )
    values = list(dict.fromkeys(given))
    first, beyond = (replace(path, steps=(*path.steps, index)) for index in (0, len(values)))
    return And((Not(IsNull(first)), IsNull(beyond), *(Exists(path, one) for one in values)))


def _changed(paths: Paths, _value: Any) -> Condition:
    """Return a condition for two fields that differ as JSON, or of which one is null or missing."""
    new, old = paths
    as_json = [replace(path, is_text=False) for path in (new, old)]
    return Or(
        (
            And(
                (
                    Not(IsNull(new)),
                    Not(IsNull(old)),
                    Comparison(as_json[0], Operator.DIFFERENT, as_json[1]),
                )
            ),
            And((Not(IsNull(new)), IsNull(old))),
            And((IsNull(new), Not(IsNull(old)))),
        )
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _literal(value: Any) -> Literal:
    """Return the literal of a value.

    A boolean compares as text, which differs from every other value; numbers compare by size.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return Decimal(repr(value))
        case int() | str():
            return value
    raise CannotSayError(
        "fieldValue", "Give a text, a number, true, false, or an object of fields within the field."
    )


def _pattern(value: Any) -> str:
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text:
        raise CannotSayError("fieldValue", "Give a text to look for.")
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"


_IN_ARRAYS = "in an array also a part of an element, or of the text of the array as JSON, is found"
COMPARISONS: Mapping[str, Comparing] = {
    "eq": Comparing(_equal),
    "ne": Comparing(_different),
    "gt": Comparing(_ordered(Operator.GREATER)),
    "gte": Comparing(_ordered(Operator.AT_LEAST)),
    "lt": Comparing(_ordered(Operator.LESS)),
    "lte": Comparing(_ordered(Operator.AT_MOST)),
    "contains": Comparing(_contains, _IN_ARRAYS),
    "notContains": Comparing(_contains_not, _IN_ARRAYS),
    "containsOnly": Comparing(_contains_only, "an array that has an element twice does not match"),
    "changed": Comparing(_changed),
}
