"""Compilation of a syntax tree into a closure which tests a document.

Every closure answers only "is this certainly true?". `NOT` inverts the question instead of the
answer (`not (a < b)` tests `a >= b`, and so on down to the leaves). So null needs no third value:
it answers no to both.
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

from subscriptions.filters.document import Document
from subscriptions.filters.jsonb import (
    MISSING,
    Json,
    Missing,
    containment_test,
    element,
    has_key,
    is_equal,
    printed_text,
)
from subscriptions.filters.patterns import like_test
from subscriptions.filters.reading import comparable_pair, reader
from subscriptions.filters.tree import (
    And,
    Comparison,
    Condition,
    Contains,
    Exists,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Membership,
    Not,
    Operator,
    Or,
    Path,
    Root,
    json_literal,
    kind_of,
    literals_by_kind,
)

Test: TypeAlias = Callable[[Document], bool]
_Find: TypeAlias = Callable[[Document], Json | Missing]

_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.DIFFERENT: operator.ne,
    Operator.LESS: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.GREATER: operator.gt,
    Operator.AT_LEAST: operator.ge,
}
_OPPOSITE = {
    Operator.EQUAL: Operator.DIFFERENT,
    Operator.DIFFERENT: Operator.EQUAL,
    Operator.LESS: Operator.AT_LEAST,
    Operator.AT_MOST: Operator.GREATER,
    Operator.GREATER: Operator.AT_MOST,
    Operator.AT_LEAST: Operator.LESS,
}


def to_python(tree: Condition) -> Test:
    """Return a function which tests a document. It never raises and never changes the document."""
    return _test(tree, expected=True)


def text_at(path: Path) -> Callable[[Document], str | None]:
    """Return a function for a path's value as text, JSON as in jsonb; None for null."""
    find = _find(path)

    def text(document: Document) -> str | None:
        value = find(document)
        return document.text_of(value) if path.is_text or value is MISSING else printed_text(value)

    return text


def comparable_text(path: Path, texts: Iterable[str]) -> Callable[[Document], str | None]:
    """Return a function for a path's text to compare with these; None for null.

    A text unequal to all of them may be shortened.
    """
    find, read = _find(path), reader(path, LiteralKind.STRING, texts)
    return lambda document: cast("str | None", read(document, find(document)))


def identity_at(path: Path) -> Callable[[Document], str | None]:
    """Return a function for a path's value as text, equal for equal values only.

    It gives None for null, and for JSON's null as well, because two messages without a value are
    not duplicates.
    """
    find = _find(path)

    def identity(document: Document) -> str | None:
        value = find(document)
        if path.is_text:
            return document.text_of(value)
        return None if value is MISSING or value is None else document.identity_of(value)

    return identity


def _test(tree: Condition, *, expected: bool) -> Test:
    """Return a test of whether the condition is true, or false with `expected=False`."""
    match tree:
        case Not(condition):
            return _test(condition, expected=not expected)
        case And(conditions):
            return (_all if expected else _any)(
                [_test(part, expected=expected) for part in conditions]
            )
        case Or(conditions):
            return (_any if expected else _all)(
                [_test(part, expected=expected) for part in conditions]
            )
        case Comparison(path, relation, operand):
            return _comparison(path, relation if expected else _OPPOSITE[relation], operand)
        case Membership(path, literals):
            return _membership(path, literals, expected=expected)
        case Like(path, pattern):
            return _like(path, pattern, expected=expected)
        case Exists(path, key):
            return _json_test(path, lambda value: has_key(value, key), expected=expected)
        case Contains(path, json):
            return _json_test(path, containment_test(json), expected=expected)
        case IsNull(path):
            return _is_null(path, expected=expected)


def _all(tests: list[Test]) -> Test:
    def all_true(document: Document) -> bool:
        # A loop, because all() with a generator takes twice the time.
        for test in tests:
            if not test(document):
                return False
        return True

    return tests[0] if len(tests) == 1 else all_true


def _any(tests: list[Test]) -> Test:
    def one_true(document: Document) -> bool:
        for test in tests:
            if test(document):
                return True
        return False

    return tests[0] if len(tests) == 1 else one_true


def _never(_document: Document) -> bool:
    return False


def _comparison(path: Path, relation: Operator, operand: Path | Literal) -> Test:
    if isinstance(operand, Path):
        return _between_paths(path, relation, operand)
    if not relation.is_order:
        return _membership(path, (operand,), expected=relation is Operator.EQUAL)
    if operand is None:
        return _never
    find, read, compare = _find(path), reader(path, kind_of(operand), [operand]), _COMPARE[relation]

    def is_ordered(document: Document) -> bool:
        value = read(document, find(document))
        return value is not None and compare(value, operand)

    return is_ordered


def _between_paths(path: Path, relation: Operator, other: Path) -> Test:
    left, right, compare = _find(path), _find(other), _COMPARE[relation]

    def texts(document: Document) -> bool:
        first, second = document.text_of(left(document)), document.text_of(right(document))
        return first is not None and second is not None and compare(first, second)

    def equality(document: Document) -> bool:
        first, second = left(document), right(document)
        return first is not MISSING and second is not MISSING and is_equal(first, second) is wanted

    def order(document: Document) -> bool:
        pair = comparable_pair(left(document), right(document))
        return pair is not None and compare(*pair)

    wanted = relation is Operator.EQUAL
    return texts if path.is_text else order if relation.is_order else equality


def _membership(path: Path, literals: tuple[Literal, ...], *, expected: bool) -> Test:
    if not path.is_text:
        return _among_json(path, literals, expected=expected)
    tests = [
        _among_text(path, kind, members, expected=expected)
        for kind, members in literals_by_kind(literals)
    ]
    return (_any if expected else _all)(tests)


def _among_text(
    path: Path, kind: LiteralKind, literals: tuple[Literal, ...], *, expected: bool
) -> Test:
    if kind is LiteralKind.NULL:
        return _never
    find, read, members = _find(path), reader(path, kind, literals), frozenset(literals)

    def is_member(document: Document) -> bool:
        return read(document, find(document)) in members

    def is_no_member(document: Document) -> bool:
        value = read(document, find(document))
        return value is not None and value not in members

    return is_member if expected else is_no_member


def _among_json(path: Path, literals: tuple[Literal, ...], *, expected: bool) -> Test:
    find = _find(path)
    members = tuple(json_literal(literal) for literal in literals if literal is not None)
    if not expected and None in literals:
        return _never

    def is_member(document: Document) -> bool:
        value = find(document)
        if value is MISSING:
            return False
        for member in members:
            if is_equal(value, member):
                return expected
        return not expected

    return is_member


def _like(path: Path, pattern: str, *, expected: bool) -> Test:
    find, fits = _find(path), like_test(pattern)

    def is_like(document: Document) -> bool:
        text = document.text_of(find(document))
        return text is not None and fits(text) is expected

    return is_like


def _json_test(path: Path, fits: Callable[[Json], bool], *, expected: bool) -> Test:
    find = _find(path)

    def is_fitting(document: Document) -> bool:
        value = find(document)
        return value is not MISSING and fits(value) is expected

    return is_fitting


def _is_null(path: Path, *, expected: bool) -> Test:
    find = _find(path)

    def is_null(document: Document) -> bool:
        value = find(document)
        return (value is MISSING or (path.is_text and value is None)) is expected

    return is_null


def _find(path: Path) -> _Find:
    root: Callable[[Document], Any] = operator.attrgetter(
        "header" if path.root is Root.HEADER else "body"
    )
    steps = path.steps

    def by_name(document: Document) -> Any:
        value = root(document)
        for step in steps:
            if type(value) is not dict:
                return MISSING
            value = value.get(step, MISSING)
        return value

    def by_step(document: Document) -> Any:
        value = root(document)
        for step in steps:
            if type(step) is int:
                value = element(value, step)
            else:
                value = value.get(step, MISSING) if type(value) is dict else MISSING
        return value

    return by_name if all(isinstance(step, str) for step in steps) else by_step
