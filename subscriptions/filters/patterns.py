"""Patterns of `like`: split at each `%`, and tested without backtracking."""

import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

# To find a part with `_` takes its length times the text's.
MAX_PART = 100

# None matches any character.
_Part: TypeAlias = tuple[str | None, ...]
_Find: TypeAlias = Callable[[str, int, int], int]


def is_costly(pattern: str) -> bool:
    """Return whether a part between two `%` contains `_` and is longer than MAX_PART characters."""
    return any(None in part and len(part) > MAX_PART for part in _parts(pattern)[1:-1])


def like_test(pattern: str) -> Callable[[str], bool]:
    """Return a test of whether a text is like the pattern, which takes time linear in the text."""
    first, *others = _parts(pattern)
    if not others:
        return partial(_is_whole, _found(first), len(first))
    *inner, last = others
    begins, ends = _found(first), _found(last)
    found = [(_found(part), len(part)) for part in inner if part]

    def is_like(text: str) -> bool:
        position, end = len(first), len(text) - len(last)
        if position > end or begins(text, 0, position) != 0 or ends(text, end, len(text)) != end:
            return False
        # The first position where a part fits is never worse than a later position.
        for find, length in found:
            at = find(text, position, end)
            if at < 0:
                return False
            position = at + length
        return True

    return is_like


def like_expression(pattern: str) -> str:
    """Return the pattern as a regular expression for the whole text."""
    first, *others = map(_expression, _parts(pattern))
    if not others:
        return first
    *inner, last = others
    # Atomic groups prevent backtracking, which could take practically for ever.
    found = "".join(f"(?>.*?{part})" for part in inner if part)
    return f"{first}{found}.*{last}"


def _parts(pattern: str) -> list[_Part]:
    parts: list[list[str | None]] = [[]]
    for escaped, character in re.findall(r"(\\?)(.)", pattern, re.DOTALL):
        if character == "%" and not escaped:
            parts.append([])
        else:
            parts[-1].append(None if character == "_" and not escaped else character)
    return [tuple(part) for part in parts]


def _expression(part: _Part) -> str:
    return "".join("." if character is None else re.escape(character) for character in part)


def _is_whole(find: _Find, length: int, text: str) -> bool:
    return len(text) == length and find(text, 0, length) == 0


def _found(part: _Part) -> _Find:
    """Return a function for the first position of the part in text[begin:end], or -1."""
    if None in part:
        expression = re.compile(_expression(part), re.DOTALL)

        def find(text: str, begin: int, end: int) -> int:
            found = expression.search(text, begin, end)
            return found.start() if found else -1

        return find
    literal = "".join(map(str, part))
    # str.find is a two-way search, whose worst case is linear.
    return lambda text, begin, end: text.find(literal, begin, end)
