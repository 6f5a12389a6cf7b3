"""Patterns of JSON Schema are close to ECMA-262, and each compile and search ends soon."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscriptions.values import schema_patterns
from subscriptions.values.schema_patterns import PatternError, schema_pattern


def is_found(pattern: str, text: str) -> bool:
    return schema_pattern(pattern).is_found_in(text)


_ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\W", r"\s", "[a-c1]", "^", r"\b"]
_ATOMS += [
    r"\S",
    r"\D",
    r"\\",
    r"\\s",
    r"\\\w",
    r"[\s\d]",
    r"[^\W]",
    r"[\]\s]",
    r"[.\\]",
    r"\[\d",
    r"\.",
]
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


@given(_patterns, st.lists(st.text(r"aabbc1 _-\s.[]", max_size=8), max_size=20))
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
        ("^.$", "\x85", "\r"),
        (r"a\b", "aé", "a_"),
        (r"a\B", "a_", "aé"),
        (r"^\0[\0]$", "\0\0", "00"),
        (r"^[\b]$", "\b", "b"),
        (r"^[\cJ\s]$", "\n", "c"),
        ("^[a[b]$", "[", "a]"),
        ("^[a&&b]$", "&", "&&"),
        ("^[^]$", "\n", ""),
        ("^a[]|b$", "b", "a"),
        (r"^\<\>$", "<>", "a"),
        ("^(?<year>[0-9]{4})$", "2026", "year"),
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


@pytest.mark.parametrize(
    "pattern",
    [
        *(escape * 5000 for escape in (r"\s", r"\S", r"\d", r"\D", r"\w", r"\W", r"\b", r"\0")),
        r"\cJ" * 3333,
        r"[\cJ]" * 2000,
        "[" + r"\cJ" * 3332 + "]",
        "[" + r"\s" * 4999,
        "[" * 9999 + "\\",
        "(?:" * 200 + r"\w" * 4500 + ")" * 200,
        r"(?x)#[\n" + r"\s" * 4990,
        "." * 10_000,
        r"\p{L}" * 2000,
        "[^ab]{1,99}" * 909,
    ],
)
def test_the_longest_patterns_are_compiled_or_refused_soon(pattern: str) -> None:
    # The library alone takes many minutes for some of them. They hold the interpreter lock, so
    # a process of their own is limited.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "from subscriptions.values.schema_patterns import PatternError, schema_pattern\n"
        "try: schema_pattern(sys.stdin.read())\n"
        "except PatternError: pass\n"
    )
    subprocess.run([sys.executable, "-c", code], input=pattern, text=True, check=True)


def test_a_refusal_is_remembered() -> None:
    for _ in range(3):
        with pytest.raises(PatternError):
            schema_pattern("(a refusal to remember")
    before = schema_patterns._pattern_or_refusal.cache_info().misses
    with pytest.raises(PatternError):
        schema_pattern("(a refusal to remember")
    assert schema_patterns._pattern_or_refusal.cache_info().misses == before


def test_a_larger_pattern_is_searched_in_shorter_texts() -> None:
    lengths = [
        schema_pattern(pattern).max_text_length
        for pattern in ("^[A-Za-z0-9+/]*={0,2}$", r"^\w{1,255}$", "^.{1,255}$", "^.{1,900}$")
    ]
    assert lengths == sorted(lengths, reverse=True)
    # As the guide says.
    assert lengths[0] > 1_600_000
    assert lengths[1] > 220_000
    assert lengths[2] > 26_000


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        (r"^\S{1,1999}$", "é" * 1999),
        ("^[^<>]{1,1000}$", "é" * 1000),
        ("^(?:[^/]{1,255}/){1,7}$", ("é" * 255 + "/") * 7),
        ("^.{1,1900}$", "é" * 1900),
    ],
)
def test_a_usual_limit_of_length_is_searched_in_its_longest_text(
    pattern: str, longest: str
) -> None:
    compiled = schema_pattern(pattern)
    assert compiled.is_found_in(longest)
    assert not compiled.is_found_in(longest * 2)
    assert len(longest) <= compiled.max_text_length


@pytest.mark.parametrize("pattern", [r"(a)\1", r"(?<a>b)\k<a>", "(?=a)b", "(?!a)b", "(?<=a)b"])
def test_look_around_and_back_references_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="look-around and back-references are not supported"):
        schema_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("(?x)a b", "(?x"),
        ("(?i:a)", "(?i"),
        ("(?P<a>b)", "(?P"),
        ("(?#x)a", "(?#"),
        ("(?\ud800", "(?"),
        (r"a\z", r"\z"),
    ],
)
def test_what_only_other_dialects_have_is_refused(pattern: str, part: str) -> None:
    with pytest.raises(PatternError) as error:
        schema_pattern(pattern)
    assert str(error.value) == f"its {part} is not supported here"


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a{2,1}",
        r"\ud83d\ude00",
        "a{,3}",
        "[b-a]",
        "a\ud800",
        "^{[0-9]+}$",
        "a{" + "9" * 5000 + ",1}",
        "(?:" * 400 + ")*" * 400,
    ],
)
def test_other_syntax_is_refused_without_a_word_on_ecma_262(pattern: str) -> None:
    with pytest.raises(
        PatternError, match=r"^its syntax is not supported here, or it is nested too"
    ):
        schema_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["(((a{50}){50}){50}){50}", r"(\p{L}{1,100}){20}", r"\S" * 5000, "[^{1}]{9999}{999}"]
)
def test_a_pattern_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"^it is too large"):
        schema_pattern(pattern)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(PatternError, match="longer than 10000 characters"):
        schema_pattern("a?" * 5001)
