"""The comparisons of Workfront in the filter language.

`path` is the field as text (`->>`). Workfront documents each comparison in a sentence; numbers in
texts and missing fields are not documented. Here a numeric text compares by size, and a missing or
null field differs from every value and contains none. A value with date, time and offset compares
as a moment. `contains` looks in a text for a part, and in an array for an element.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from subscriptions.filters import Condition
from subscriptions.filters.jsonb import Missing, canonical_text, parse_jsonb
from subscriptions.filters.moments import moment_of
from subscriptions.filters.tree import (
    NUMBER_TEXT,
    And,
    Comparison,
    Contains,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Path,
)

DEEPEST, LONGEST_NUMBER = 20, 100
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
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

    `of` makes the condition from paths and a value: one path, but for `changed` the new and the old
    path. If the value is an object, `of` is called for each field within the field, and
    `of_element` joins these conditions with a condition for the elements of an array. `differs`
    describes how the result for a value may differ from Workfront's.
    """

    of: Callable[[Paths, Any], Condition]
    differs: Callable[[Any], str] | None = None
    of_element: Callable[[Condition, Path, Any], Condition] | None = None


def nested_values(name: str, value: Any) -> list[Leaf]:
    """Return the steps to each value: in an object, fieldValue names fields within the field."""
    leaves: list[Leaf] = []
    level: list[Leaf] = [((name,), value)]
    for _ in range(DEEPEST):
        leaves += [(steps, nested) for steps, nested in level if not isinstance(nested, dict)]
        if any(nested == {} for _, nested in level):
            raise CannotSayError(
                "fieldValue", "An object names fields within the field; this one is empty."
            )
        level = [
            ((*steps, inner), deeper)
            for steps, nested in level
            if isinstance(nested, dict)
            for inner, deeper in nested.items()
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
    literal = _literal(value)
    conditions: list[Condition] = [
        IsNull(path),
        Comparison(path, Operator.DIFFERENT, literal),
    ]
    if isinstance(literal, datetime):
        # A text other than a moment differs, too.
        conditions.append(Not(Like(path, "____-__-__T__:__:__%")))
    return Or(tuple(conditions))


def _ordered(operator: Operator) -> Callable[[Paths, Any], Condition]:
    def compare(paths: Paths, value: Any) -> Condition:
        (path,) = paths
        literal = _literal(value)
        if value is None or isinstance(value, bool):
            raise CannotSayError("fieldValue", "Only numbers and texts have an order.")
        if (
            isinstance(literal, str)
            and _NUMBER.fullmatch(literal)
            and len(literal) <= LONGEST_NUMBER
        ):
            literal = Decimal(literal)
        return Comparison(path, operator, literal)

    return compare


def _contains(paths: Paths, value: Any) -> Condition:
    """Return a condition for a text with this part, or an array with this element, or with any."""
    (path,) = paths
    values = value if isinstance(value, list) else [value]
    if not values:
        raise CannotSayError("fieldValue", "Give a text, or an array with at least one.")
    as_json = replace(path, is_text=False)
    elements = [
        Contains(as_json, element)
        for wanted in values
        for element in dict.fromkeys(_elements(wanted))
    ]
    parts = [Like(path, _pattern(wanted)) for wanted in values if not isinstance(wanted, dict)]
    if not parts:
        return _any_of(elements)
    in_text = And((Not(Contains(as_json, "[]")), _any_of(parts)))
    return _any_of([*elements, in_text])


def _contains_not(paths: Paths, value: Any) -> Condition:
    (path,) = paths
    return Or((IsNull(path), Not(_contains(paths, value))))


def _element_is(within: Condition, path: Path, value: Any) -> Condition:
    return Or((within, Contains(replace(path, is_text=False), _json([value]))))


def _no_element_is(within: Condition, path: Path, value: Any) -> Condition:
    is_element = Contains(replace(path, is_text=False), _json([value]))
    return And((within, Or((IsNull(path), Not(is_element)))))


def _any_of(conditions: Sequence[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else Or(tuple(conditions))


def _elements(value: Any) -> list[str]:
    """Return the elements equal to the value: a number and its text are equal."""
    if isinstance(value, dict):
        return [_json([value])]
    text = _searched(value)
    is_number = len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text)
    return [_json(text), *([_canonical(text)] if is_number else [])]


def _json(value: Any) -> str:
    return _canonical(json.dumps(value))


def _canonical(text: str) -> str:
    found = parse_jsonb(text.encode())
    if isinstance(found, Missing):
        raise CannotSayError("fieldValue", "It has a character or a number that no message has.")
    return canonical_text(found)


def _contains_only(paths: Paths, value: Any) -> Condition:
    """Return a condition for an array with exactly these elements, in any order.

    It must have as many elements as the set has, and each of them; a single value counts as an
    array of one element.
    """
    path = replace(paths[0], is_text=False)
    given = value if isinstance(value, list) else [value]
    if not given:
        raise CannotSayError("fieldValue", "Give a text, a number, or an array with at least one.")
    values = list(dict.fromkeys(map(_searched, given)))
    first, beyond = (replace(path, steps=(*path.steps, index)) for index in (0, len(values)))
    found = [
        _any_of([Contains(path, element) for element in _elements(wanted)]) for wanted in values
    ]
    return And((Not(IsNull(first)), IsNull(beyond), *found))


def _changed(paths: Paths, _value: Any) -> Condition:
    """Return a condition for two fields that differ as JSON, or if either is null or missing."""
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


def _literal(value: Any) -> Literal:
    """Return the literal of a value.

    A boolean compares as text, which differs from every other value; numbers compare by size.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return Decimal(repr(value))
        case int():
            return value
        case str():
            return moment_of(value) or value
    raise CannotSayError(
        "fieldValue", "Give a text, a number, true, false, or an object of fields within the field."
    )


def _searched(value: Any) -> str:
    """Return the text to look for."""
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text:
        raise CannotSayError("fieldValue", "Give a text or a number to look for.")
    return text


def _pattern(value: Any) -> str:
    return "%" + re.sub(r"([\\%_])", r"\\\1", _searched(value)) + "%"


def _differs_in_order(value: Any) -> str:
    is_date = isinstance(value, str) and _DATE.match(value) and not moment_of(value)
    return (
        "a date without a time and an offset compares as text; give both to compare moments"
        if is_date
        else ""
    )


def _differs_for_lists(value: Any) -> str:
    return (
        "of several values one is enough to be contained; Workfront documents one value"
        if isinstance(value, list) and len(value) > 1
        else ""
    )


def _differs_for_repeated(_value: Any) -> str:
    return "an array that has an element twice does not match"


COMPARISONS: Mapping[str, Comparing] = {
    "eq": Comparing(_equal),
    "ne": Comparing(_different),
    "gt": Comparing(_ordered(Operator.GREATER), _differs_in_order),
    "gte": Comparing(_ordered(Operator.AT_LEAST), _differs_in_order),
    "lt": Comparing(_ordered(Operator.LESS), _differs_in_order),
    "lte": Comparing(_ordered(Operator.AT_MOST), _differs_in_order),
    "contains": Comparing(_contains, _differs_for_lists, _element_is),
    "notContains": Comparing(_contains_not, _differs_for_lists, _no_element_is),
    "containsOnly": Comparing(_contains_only, _differs_for_repeated),
    "changed": Comparing(_changed),
}
