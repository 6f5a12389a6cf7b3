"""A filter parsed by its shape is the one that the parser makes, or is refused alike."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subscriptions.filters import Condition, FilterError, normal_form, parse_filter
from subscriptions.filters.shapes import parse_alike
from tests.unit.subscriptions.filters.random_filters import cases
from tests.unit.subscriptions.filters.random_messages import Message

_PIECES = [
    *("$$->'Body'->>'a'", "$$->'Header'->>'like'", "$$->'Body'->'a'", " = ", ">=", "!=", " LIKE "),
    *(" like", " in ", "('a', 'b')", " and ", " or not ", "(", ")", " is null", "->", "->>", "?"),
    *("'", "'a'", "'it''s'", "'a = ''b'''", "'like'", "'a%'", "'\\'", "'\ue0000'", "‘a’", "‘a'"),
    *("''", "5", "true", "like 'a'", "= 'a'", "= 'b'", "\u200b", "\ud800"),
]


def parsed(text: str, parse: object) -> Condition | str:
    assert callable(parse)
    try:
        tree: Condition = parse(text)
    except FilterError as error:
        return str(error)
    return tree


@settings(deadline=None)
@given(cases())
def test_random_filters_have_the_same_tree(case: tuple[list[Condition], list[Message]]) -> None:
    for tree in case[0]:
        text = normal_form(tree)
        # Some are refused: a number may have too many digits.
        assert parsed(text, parse_alike) == parsed(text, parse_filter)


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join))
def test_any_text_has_the_same_tree_or_error(text: str) -> None:
    assert parsed(text, parse_alike) == parsed(text, parse_filter)


@pytest.mark.parametrize("pattern", ["a\\", "a\\\\", "%" + "_" * 101 + "%", "%" + "_" * 100 + "%"])
def test_a_pattern_is_checked_though_its_shape_is_known(pattern: str) -> None:
    parse_alike("$$->'Body'->>'a' like 'b%'")
    text = f"$$->'Body'->>'a' like '{pattern}'"
    assert parsed(text, parse_alike) == parsed(text, parse_filter)
