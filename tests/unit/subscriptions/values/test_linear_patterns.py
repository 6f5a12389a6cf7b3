"""A linear pattern finds what Python's `re` finds, and its search always ends."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscriptions.values.linear_patterns import MAX_PLACES, LinearPattern, PatternError

ATOMS = [
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    r"\d",
    r"\w",
    r"\W",
    r"\s",
    "[a-c1]",
    "^",
    "$",
    r"\b",
    r"\B",
    r"\A",
    r"\Z",
    "é",
]
QUANTIFIERS = ["", "", "", "*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}?", "{2,}"]

_atoms = st.sampled_from(ATOMS)


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = st.tuples(inner.map("({})".format), st.sampled_from(QUANTIFIERS)).map("".join)
    several = st.lists(grouped, min_size=1, max_size=3)
    return several.map("".join) | several.map("|".join)


patterns = st.recursive(
    st.tuples(st.sampled_from(ATOMS).map("(?:{})".format), st.sampled_from(QUANTIFIERS)).map(
        "".join
    ),
    _composed,
    max_leaves=6,
)
texts = st.text("aabbc1 \né_", max_size=10)


@given(patterns, st.lists(texts, max_size=20))
def test_a_pattern_matches_where_pythons_does(pattern: str, asked: list[str]) -> None:
    linear = LinearPattern(pattern)
    for text in ["", "\n", "a\n", *asked]:
        assert linear.is_found_in(text) is (re.search(pattern, text) is not None), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 100_000 + "!"),
        ("^(a|a)*$", "a" * 100_000 + "!"),
        ("(x+x+)+y", "x" * 100_000),
        (r"\s+$", " " * 100_000 + "x"),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
    ],
)
def test_a_search_needs_one_step_for_each_character(pattern: str, text: str) -> None:
    steps: list[None] = []
    assert not LinearPattern(pattern).is_found_in(text, lambda: steps.append(None))
    # Few kinds of characters, few sets of places: all other steps were found before.
    assert len(steps) < 20


def test_the_cache_of_a_pattern_is_bounded() -> None:
    linear = LinearPattern("^[^x]*x")
    text = "".join(map(chr, range(1000, 40_000)))
    assert not linear.is_found_in(text)
    assert linear.is_found_in(text + "x")


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", "(?=a)b", "(?!a)b", "(?<=a)b", "(?i)a", "(?i:a)", "(?>a)", "a++"]
)
def test_look_around_and_back_references_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="not supported"):
        LinearPattern(pattern)


def test_a_pattern_that_is_too_large_is_refused() -> None:
    with pytest.raises(PatternError, match=f"more than {MAX_PLACES} places"):
        LinearPattern("((a{50}){50}){50}")
    with pytest.raises(PatternError, match=f"more than {MAX_PLACES} places"):
        LinearPattern("(){4000000000}")
    with pytest.raises(PatternError, match="no regular expression"):
        LinearPattern("(")


def test_a_pattern_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(PatternError, match=r"nested too deep|no regular expression"):
        LinearPattern("(?:" * 400 + "a" + ")*" * 400)


def test_a_large_class_that_is_repeated_is_compiled_once() -> None:
    members = "".join(chr(0x400 + number) for number in range(0, 600, 2))
    pattern = LinearPattern(f"[{members}]{{900}}")
    assert len(pattern._testers) == 1
    assert pattern.is_found_in(members[0] * 900)
    assert not pattern.is_found_in(members[0] * 899)
