"""Parsing of a filter's text into a syntax tree, or into an error with advice.

`tree` has the meaning of the nodes, and the reasons why some combinations are refused.
"""

from functools import cache
from typing import cast

from lark import Lark
from lark.exceptions import UnexpectedInput

from subscriptions.filters import errors
from subscriptions.filters.build import Builder
from subscriptions.filters.errors import FilterError
from subscriptions.filters.parts import ExpressionPart, condition_of, path_of
from subscriptions.filters.tree import Condition, Path

MAX_LENGTH = 10_000
MAX_DEPTH = 50


def parse_filter(text: str) -> Condition:
    """Parse a filter; raises FilterError with line and column."""
    return condition_of(_read(text))


def parse_path(text: str) -> Path:
    """Parse a path, such as `$$->'Body'->>'id'`; raises FilterError for anything else."""
    return path_of(_read(text), "this place")


def _read(text: str) -> ExpressionPart:
    errors.refuse_unreadable(text, max_length=MAX_LENGTH)
    try:
        # Checked before parsing, because the compilers and their results are recursive. Fewer
        # parentheses are not inside each other more often; to read the tokens of each filter twice
        # took half the time of parsing it.
        if text.count("(") > MAX_DEPTH:
            errors.refuse_deep(_parser().lex(text), max_depth=MAX_DEPTH)
        return cast("ExpressionPart", _parser().parse(text))
    except (UnexpectedInput, FilterError) as error:
        raise _to_report(error, text) from None


def _to_report(error: UnexpectedInput | FilterError, text: str) -> FilterError:
    """Return the error to report: errors of tokens precede those of their order and meaning."""
    try:
        errors.refuse_deep(_parser().lex(text), max_depth=MAX_DEPTH)
    except FilterError as deep:
        return deep
    except UnexpectedInput as unread:
        return errors.syntax_error(unread, text)
    return error if isinstance(error, FilterError) else errors.syntax_error(error, text)


@cache
def _parser() -> Lark:
    return Lark.open(
        "grammar.lark", rel_to=__file__, parser="lalr", lexer="basic", transformer=Builder()
    )
