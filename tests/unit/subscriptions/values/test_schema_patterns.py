"""Patterns of JSON Schema have the dialect of ECMA-262, and each search ends soon."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscriptions.values.schema_patterns import PatternError, schema_pattern


def is_found(pattern: str, text: str) -> bool:
    return schema_pattern(pattern).is_found_in(text)


_ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\W", r"\s", "[a-c1]", "^", r"\b"]
_QUANTIFIERS = ["", "", "", "*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}?", "{2,}"]


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = st.tuples(inner.map("({})".format), st.sampled_from(_QUANTIFIERS)).map("".join)
    several = st.lists(grouped, min_size=1, max_size=3)
    return several.map("".join) | several.map("|".join)


_patterns = st.recursive(
    st.tuples(st.sampled_from(_ATOMS).map("(?:{})".format), st.sampled_from(_QUANTIFIERS)).map(
        "".join
    ),
    _composed,
    max_leaves=4,
)


@given(_patterns, st.lists(st.text("aabbc1 _-", max_size=8), max_size=20))
def test_a_pattern_in_common_with_python_matches_the_same(pattern: str, texts: list[str]) -> None:
    for text in ["", *texts]:
        assert is_found(pattern, text) is (re.search(pattern, text) is not None), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        (r"^\d$", "1", "٣"),
        (r"^\w$", "_", "é"),
        (r"^\s$", "\u00a0", "x"),
        (r"^\p{L}+$", "Größe", "1"),
        (r"^\u4e00$", "一", "u4e00"),
        (r"^\cJ$", "\n", "cJ"),
        ("a$", "ba", "a\n"),
        ("^a", "ab", "\na"),
        (r"^a\/b\-c$", "a/b-c", r"a\/b\-c"),
    ],
)
def test_the_dialect_is_that_of_json_schema(pattern: str, found: str, not_found: str) -> None:
    assert is_found(pattern, found)
    assert not is_found(pattern, not_found)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 100_000 + "!"),
        ("^(a|a)*$", "a" * 100_000 + "!"),
        ("(x+x+)+y", "x" * 100_000),
        (r"\s+$", " " * 100_000 + "x"),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        ("(?:a?){300}a{300}b", "a" * 100_000),
    ],
)
def test_a_search_that_never_ends_by_backtracking_ends(pattern: str, text: str) -> None:
    compiled = schema_pattern(pattern)
    assert not compiled.is_found_in(text)
    assert len(text) < compiled.max_text_length


def test_a_larger_pattern_is_searched_in_shorter_texts() -> None:
    lengths = [
        schema_pattern(pattern).max_text_length
        for pattern in ("^[A-Za-z0-9+/]*={0,2}$", r"^\w{1,255}$", "^.{1,255}$", "^.{1,900}$")
    ]
    assert lengths == sorted(lengths, reverse=True)
    # Base64 of a message of the default limit, and of some more.
    assert lengths[0] > 10_000_000
    assert lengths[-1] > 10_000


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)b", "(?!a)b", "(?<=a)b"])
def test_look_around_and_back_references_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="not supported"):
        schema_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(", "a{2,1}", r"a\Z", "(?#x)a", "a{,3}", "[b-a]", "a\ud800", "(?:" * 400 + ")*" * 400],
)
def test_what_is_no_regular_expression_of_json_schema_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="no regular expression of ECMA-262"):
        schema_pattern(pattern)


def test_a_pattern_that_is_too_large_is_refused() -> None:
    with pytest.raises(PatternError, match="too large"):
        schema_pattern("((a{50}){50}){50}")
    with pytest.raises(PatternError, match="longer than 10000 characters"):
        schema_pattern("a?" * 5001)
