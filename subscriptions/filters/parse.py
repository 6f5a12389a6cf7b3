"""From the text of a filter to its syntax tree, or to an error that says what to do.

What the nodes mean, and why some combinations are refused, stands in `tree`.
"""

from functools import cache
from typing import cast

from lark import Lark
from lark.exceptions import UnexpectedInput

from subscriptions.filters import errors
from subscriptions.filters.build import Builder
from subscriptions.filters.parts import ExpressionPart, condition_of, path_of
from subscriptions.filters.tree import Condition, Path

MAX_LENGTH = 10_000
MAX_DEPTH = 50


def parse(text: str) -> Condition:
    """Raise FilterError, which tells line and column, for anything but a filter."""
    return condition_of(_read(text))


def parse_path(text: str) -> Path:
    """Raise FilterError for anything but a path, such as `$$->'Body'->>'id'`."""
    return path_of(_read(text), "this place")


def _read(text: str) -> ExpressionPart:
    errors.refuse_unreadable(text, max_length=MAX_LENGTH)
    try:
        # First, for the compilers are recursive and so is what they make.
        errors.refuse_deep(_parser().lex(text), max_depth=MAX_DEPTH)
        return cast("ExpressionPart", _parser().parse(text))
    except UnexpectedInput as error:
        raise errors.syntax_error(error, text) from None


@cache
def _parser() -> Lark:
    return Lark.open("grammar.lark", rel_to=__file__, parser="lalr", lexer="basic", transformer=Builder())
