"""Parsing of filters which differ only in the compared texts: a single parse for a shape.

Applications subscribe once for each project, so thousands of filters are the same text with another
name in it. A shape is that text with a mark in place of each string behind `=`, `!=`, `<=`, `>=` or
`like`; to put the strings back into the tree takes a fiftieth of the time of parsing the filter.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from subscriptions.filters import errors
from subscriptions.filters.errors import FilterError
from subscriptions.filters.parse import MAX_LENGTH, parse_filter
from subscriptions.filters.patterns import is_costly
from subscriptions.filters.tree import And, Comparison, Condition, Like, Not, Or

# A character for private use: a filter with it is parsed by itself.
_MARK = "\ue000"
# Curly quotes may open and close strings as well, in ways beyond a single expression.
_UNUSUAL = re.compile(f"[{_MARK}‘’‚‛]")
# Every string is matched, so none is looked for inside another.
_STRING = re.compile(
    r"(?P<before>=|\blike)(?P<space>\s*)'(?P<compared>(?:[^']|'')*)'|'(?:[^']|'')*'", re.IGNORECASE
)


def parse_alike(text: str) -> Condition:
    """Return and raise the same as `parse_filter`, sooner if the shape is known."""
    tree, strings = parse_shape(text)
    filled = _filled(tree, strings) if strings else tree
    return parse_filter(text) if filled is None else filled


def parse_shape(text: str) -> tuple[Condition, Sequence[str]]:
    """Return the tree of a filter with marks, and the strings behind them.

    `string_of` puts a string back. Without strings there are no marks. It raises the same as
    `parse_filter`, except for an invalid pattern.
    """
    if _UNUSUAL.search(text):
        return parse_filter(text), ()
    errors.refuse_unreadable(text, max_length=MAX_LENGTH)
    strings: list[str] = []
    shape = _STRING.sub(lambda found: _marked(found, strings), text)
    tree = _tree(shape) if strings else None
    return (parse_filter(text), ()) if tree is None else (tree, strings)


def string_of(text: str, strings: Sequence[str]) -> str:
    """Return a text of such a tree as the filter has it."""
    return strings[int(text[1:])] if strings and text.startswith(_MARK) else text


def _marked(found: re.Match[str], strings: list[str]) -> str:
    if found["before"] is None:
        return found[0]
    strings.append(found["compared"].replace("''", "'"))
    return f"{found['before']}{found['space']}'{_MARK}{len(strings) - 1}'"


@lru_cache(maxsize=10_000)
def _tree(shape: str) -> Condition | None:
    """Return the tree of a shape, whose strings are marks; None if no such filter is valid."""
    try:
        return parse_filter(shape)
    except FilterError:
        return None


def _filled(tree: Condition, strings: Sequence[str]) -> Condition | None:
    """Return the tree with these strings; None if any is an invalid pattern."""
    match tree:
        case Comparison(path, relation, str() as mark) if mark.startswith(_MARK):
            return Comparison(path, relation, strings[int(mark[1:])])
        case Like(path, mark) if mark.startswith(_MARK):
            pattern = strings[int(mark[1:])]
            # Each of these may be refused.
            return None if "\\" in pattern or is_costly(pattern) else Like(path, pattern)
        case Not(condition):
            filled = _filled(condition, strings)
            return None if filled is None else Not(filled)
        case And(conditions) | Or(conditions):
            parts = [_filled(part, strings) for part in conditions]
            return None if None in parts else type(tree)(tuple(filter(None, parts)))
    return tree
