"""Compilation of a syntax tree into a boolean column of Spark, for messages of the archive.

Conditions on the text of a header (`$$->'Header'->>'x'` with texts, `in`, `like`, `is null`) become
Spark's own expressions: strings compare by their UTF-8 bytes and the logic has SQL's three values,
so the results are exact.

All other conditions, above all those on the body, run the closures of `to_python` in Spark's Python
workers, in one Arrow function. Spark has no equivalent of jsonb's numbers of any size, equality and
limits, and a second implementation of those would be too much. So the results are exact by
construction. Workers need no grammar, because the tree is sent to them.

The filter is split at its topmost AND (`not (a or b)` counts as AND), so Spark evaluates its
conditions first and sends only the remaining rows to Python, with only the columns needed. An OR
with a side in Python runs there as a whole, because Spark would call Python for every row anyway.

Measured in a run on two busy cores, with 200,000 real payloads of 10 kB: 9,000 messages a second
for a filter of the body, 65,000 to 129,000 for a filter of headers in Python, 126,000 to 213,000 in
Spark. Most of the time is spent on parsing JSON: a core parses 13,000 messages a second.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any, cast

from subscriptions.filters.document import Document
from subscriptions.filters.patterns import like_expression
from subscriptions.filters.to_python import text_at, to_python
from subscriptions.filters.tree import (
    And,
    Comparison,
    Condition,
    Contains,
    Exists,
    IsNull,
    Like,
    Literal,
    Membership,
    Not,
    Operator,
    Or,
    Path,
    Root,
)

# Spark is imported only when a column is made, so any code may import this module.
if TYPE_CHECKING:
    from pyspark.sql import Column

_COMPARE: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQUAL: eq,
    Operator.DIFFERENT: ne,
    Operator.LESS: lt,
    Operator.AT_MOST: le,
    Operator.GREATER: gt,
    Operator.AT_LEAST: ge,
}


def to_spark(tree: Condition, *, header: "Column", body: "Column") -> "Column":
    """Return a boolean column, null where the answer is unknown; needs a running session.

    `header` is text with a JSON object of text by `header_name`, `body` the bytes of the message;
    neither is null. Use the column in `where`, alone or joined by `&`; otherwise Spark calls Python
    for every row.
    """
    parts = list(_conjuncts(tree, expected=True))
    columns = [_native(part, header) for part in parts if _is_native(part)]
    others = tuple(part for part in parts if not _is_native(part))
    if others:
        columns.append(_in_python(And(others), {Root.HEADER: header, Root.BODY: body}))
    return _joined(and_, columns)


def text_to_spark(path: Path, *, header: "Column", body: "Column") -> "Column":
    """Return a path's value as a text column, as `->>` gives it; null where it leads nowhere.

    Persist it before filtering: Spark calls Python for each use.
    """
    from pyspark.sql.pandas.functions import arrow_udf

    texts = arrow_udf(_texts(replace(path, is_text=True)), "string")  # type: ignore[call-overload]
    return cast("Column", texts(header if path.root is Root.HEADER else body))


def _conjuncts(tree: Condition, *, expected: bool) -> Iterator[Condition]:
    """Yield conditions whose conjunction is the tree, or with `expected=False` the negation."""
    match tree, expected:
        case Not(condition), _:
            yield from _conjuncts(condition, expected=not expected)
        case (And(conditions), True) | (Or(conditions), False):
            for part in conditions:
                yield from _conjuncts(part, expected=expected)
        case _:
            yield tree if expected else Not(tree)


def _is_native(tree: Condition) -> bool:
    match tree:
        case Not(condition):
            return _is_native(condition)
        case And(conditions) | Or(conditions):
            return all(map(_is_native, conditions))
        case Comparison(path, _, operand):
            return _is_header_text(path) and (isinstance(operand, str) or _is_header_text(operand))
        case Membership(path, literals):
            return _is_header_text(path) and all(isinstance(literal, str) for literal in literals)
        case Like(path) | IsNull(path):
            return _is_header_text(path)
        case Exists() | Contains():
            return False


def _is_header_text(operand: Path | Literal) -> bool:
    match operand:
        case Path(Root.HEADER, (str(),), True):
            return True
        case _:
            return False


def _native(tree: Condition, header: "Column") -> "Column":
    match tree:
        case Not(condition):
            return ~_native(condition, header)
        case And(conditions):
            return _joined(and_, [_native(part, header) for part in conditions])
        case Or(conditions):
            return _joined(or_, [_native(part, header) for part in conditions])
        case Comparison(path, operator, operand):
            other = _text(operand, header) if isinstance(operand, Path) else operand
            return cast("Column", _COMPARE[operator](_text(path, header), other))
        case Membership(path, literals):
            return _text(path, header).isin(list(literals))
        case Like(path, pattern):
            return _text(path, header).rlike(rf"(?s)\A{like_expression(pattern)}\z")
        case IsNull(path):
            return _text(path, header).isNull()
        case Exists() | Contains():
            raise AssertionError("not native")


def _joined(join: "Callable[[Column, Column], Column]", columns: "Sequence[Column]") -> "Column":
    """Join the columns as a balanced tree.

    Spark recurses into it, and a chain of hundreds would overflow a small stack.
    """
    if len(columns) == 1:
        return columns[0]
    middle = len(columns) // 2
    return join(_joined(join, columns[:middle]), _joined(join, columns[middle:]))


def _text(path: Path, header: "Column") -> "Column":
    from pyspark.sql.functions import from_json

    # A map rather than a JSON path, which cannot express every name.
    return from_json(header, "map<string, string>").getItem(path.steps[0])


def _in_python(tree: Condition, columns: "Mapping[Root, Column]") -> "Column":
    from pyspark.sql.pandas.functions import arrow_udf

    used = set(_roots(tree))
    roots = [root for root in columns if root in used]
    # The stub requires the function type, but passing it causes a warning: the hints give the type.
    answers = arrow_udf(_answers(tree, roots), "boolean")  # type: ignore[call-overload]
    return cast("Column", answers(*[columns[root] for root in roots]))


def _answers(tree: Condition, roots: list[Root]) -> Callable[..., Any]:
    """Return the function for Spark's workers: it tests a batch of messages, given these roots."""
    from pyarrow import Array, array, bool_

    def answers(*columns: Array) -> Array:
        holds, fails = to_python(tree), to_python(Not(tree))
        values = dict(zip(roots, [column.to_pylist() for column in columns], strict=True))
        headers = map(json.loads, values[Root.HEADER]) if Root.HEADER in values else repeat({})
        documents = map(Document, headers, values.get(Root.BODY, repeat(b"")))
        return array(
            [
                True if holds(document) else False if fails(document) else None
                for document in documents
            ],
            bool_(),
        )

    return answers


def _texts(path: Path) -> Callable[..., Any]:
    """Return the function for Spark's workers, which reads the path in a batch of documents.

    They are headers or bodies.
    """
    from pyarrow import Array, array, string

    def texts(values: Array) -> Array:
        find, is_header = text_at(path), path.root is Root.HEADER
        given = values.to_pylist()
        documents = (
            Document(json.loads(text), b"") if is_header else Document({}, text) for text in given
        )
        return array([find(document) for document in documents], string())

    return texts


def _roots(tree: Condition) -> Iterator[Root]:
    match tree:
        case Not(condition):
            yield from _roots(condition)
        case And(conditions) | Or(conditions):
            for part in conditions:
                yield from _roots(part)
        case Comparison(path, _, operand):
            yield path.root
            if isinstance(operand, Path):
                yield operand.root
        case Membership(path) | Like(path) | Exists(path) | Contains(path) | IsNull(path):
            yield path.root
