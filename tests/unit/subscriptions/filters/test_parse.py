"""The syntax of filters, and the errors for wrong ones."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from subscriptions.filters import FilterError, parse_filter, parse_path
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


def body(*steps: str | int) -> Path:
    return Path(Root.BODY, steps, False)


def body_text(*steps: str | int) -> Path:
    return Path(Root.BODY, steps, True)


def header_text(*steps: str | int) -> Path:
    return Path(Root.HEADER, steps, True)


def a(value: Literal) -> Comparison:
    return Comparison(body_text("a"), Operator.EQUAL, value)


A, B, C = [f"$$->'Body'->>'a' = '{name}'" for name in "ABC"]

EFFORT_CHANGED = (
    "$$->'Body'->'original'->'fields'->'actualEffort' != "
    "$$->'Body'->'updated'->'fields'->'actualEffort'"
)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            "$$->'Body'->'original'->'project'->>'id' = 'proj1008'",
            Comparison(body_text("original", "project", "id"), Operator.EQUAL, "proj1008"),
        ),
        (
            "$$->'Body'->'original'->'project'->>'id' in ('proj1008','proj1010')",
            Membership(body_text("original", "project", "id"), ("proj1008", "proj1010")),
        ),
        (
            EFFORT_CHANGED,
            Comparison(
                body("original", "fields", "actualEffort"),
                Operator.DIFFERENT,
                body("updated", "fields", "actualEffort"),
            ),
        ),
        (
            "$$->'Body'->'Estimated Effort'->>0 > 3",
            Comparison(body_text("Estimated Effort", 0), Operator.GREATER, 3),
        ),
        (
            "$$->'Body'->'issue'->'fields'->>'customfield_10210' is not null",
            Not(IsNull(body_text("issue", "fields", "customfield_10210"))),
        ),
        (
            (
                "$$->'Body'->'original'->'project'->>'id' = 'proj1008' "
                "AND NOT $$->'Header'->>'Priority' in ('low','none')"
            ),
            And(
                (
                    Comparison(body_text("original", "project", "id"), Operator.EQUAL, "proj1008"),
                    Not(Membership(header_text("priority"), ("low", "none"))),
                )
            ),
        ),
    ],
)
def test_the_samples_of_teamforge_are_understood(text: str, tree: Condition) -> None:
    assert parse_filter(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("$$->'Body' ? 'x'", Exists(body(), "x")),
        ("$$->'Body'->1 ? 'x'", Exists(body(1), "x")),
        (
            "$$->'Body'->'a' @> '[{\"b\": 1.0, \"a\": 2}]'",
            Contains(body("a"), '[{"a": 2, "b": 1}]'),
        ),
        ("$$->'Body' @> '\"it''s\"'", Contains(body(), '"it\'s"')),
        ("not $$->'Body' @> '{}'", Not(Contains(body(), "{}"))),
        (
            "$$->'Body'->>'a' >= timestamptz '2022-12-11T16:00:00.000-0800'",
            Comparison(body_text("a"), Operator.AT_LEAST, datetime(2022, 12, 12, tzinfo=UTC)),
        ),
        (
            "$$->'Body'->>'a' in (5, TIMESTAMPTZ '2022-12-12T00:00:00Z')",
            Membership(body_text("a"), (5, datetime(2022, 12, 12, tzinfo=UTC))),
        ),
        ("$$->>'Body' like '%x'", Like(body_text(), "%x")),
        ("$$->'Body'->>'a' not like '%x'", Not(Like(body_text("a"), "%x"))),
        (
            "$$->'Body'->>'a' not in (1, null, true)",
            Not(Membership(body_text("a"), (1, None, True))),
        ),
        ("$$->'Body'->-1 is null", IsNull(body(-1))),
        ("(($$->'Body'))->'a' is null", IsNull(body("a"))),
        ("$$->'Body'->'a' <> 'x'", Comparison(body("a"), Operator.DIFFERENT, "x")),
        ("5 < $$->'Body'->'a'", Comparison(body("a"), Operator.GREATER, 5)),
        ("null = $$->'Body'->>'a'", a(None)),
        ("$$->'Body'->>'a' = 'it''s'", a("it's")),
        ("$$->'Body'->>'a' = ''", a("")),
        ("$$->'Body'->>'a'=-1.50e1", a(-15)),
        ("$$->'Body'->>'a' = .5", a(Decimal("0.5"))),
        ("$$->'Body'->>'a' = TRUE", a(True)),
        ("$$ -> 'Body'\n\t->> 'a'\u00a0= 'x'", a("x")),
    ],
)
def test_each_operator_has_its_node(text: str, tree: Condition) -> None:
    assert parse_filter(text) == tree


@pytest.mark.parametrize("quotes", ["‘’", "’’", "‘'", "‛’", "‚‘"])
def test_pasted_curly_quotes_are_quotes(quotes: str) -> None:
    first, last = quotes[0], quotes[1]
    assert parse_filter(f"$$->{first}Body{last}->>{first}a{last} = {first}x{last}") == a("x")


def test_a_curly_quote_inside_straight_ones_is_text() -> None:
    assert parse_filter("$$->'Body'->>'a' = 'O’Brien'") == a("O’Brien")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (f"{A} or {B} and {C}", Or((a("A"), And((a("B"), a("C")))))),
        (f"({A} or {B}) and {C}", And((Or((a("A"), a("B"))), a("C")))),
        (f"not {A} and {B}", And((Not(a("A")), a("B")))),
        (f"NOT ({A} AND {B})", Not(And((a("A"), a("B"))))),
        (f"not {A} or {B}", Or((Not(a("A")), a("B")))),
        (f"Not Not {A}", a("A")),
        (f"({A} AND {B}) aNd (({C}))", And((a("A"), a("B"), a("C")))),
        ("not $$->'Body'->>'a' in ('A')", Not(Membership(body_text("a"), ("A",)))),
        ("not $$->'Body'->>'a' is null", Not(IsNull(body_text("a")))),
    ],
)
def test_connectives_bind_as_in_sql(text: str, tree: Condition) -> None:
    assert parse_filter(text) == tree


@pytest.mark.parametrize(
    "name", ["FILTER_STRING", "Filter-String", "filter-string", "filter_STRING"]
)
def test_a_header_is_found_under_any_spelling(name: str) -> None:
    assert parse_filter(f"$$->'Header'->>'{name}' = 'x'") == Comparison(
        header_text("filter-string"), Operator.EQUAL, "x"
    )
    assert parse_filter(f"$$->'Header' ? '{name}'") == Exists(
        Path(Root.HEADER, (), False), "filter-string"
    )


def test_names_in_the_body_are_used_as_written() -> None:
    assert parse_filter("$$->'Body'->>'FILTER_STRING' = 'x'") != parse_filter(
        "$$->'Body'->>'filter-string' = 'x'"
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "advice"),
    [
        ("", 1, 1, "empty"),
        ("$$", 1, 1, "compare it"),
        ("$$->'Body'", 1, 1, "compare it"),
        ("true", 1, 1, "not a condition"),
        ("$$->'Body' @> 'a'", 1, 15, "JSON in single quotes"),
        ("$$->'Body' @> 5", 1, 15, "JSON in single quotes"),
        ("$$->'Body' @> '\"\\u0000\"'", 1, 15, "JSON in single quotes"),
        (f"$$->'Body' @> '[{'1,' * 100}1]'", 1, 15, "more than 100 elements"),
        ("$$->'Body' @> '1e20000'", 1, 15, "10000 characters"),
        ("$$->>'Body' @> '1'", 1, 13, "end the path on its left with ->"),
        ("$$->>'Body' = timestamptz '2022-12-12'", 1, 27, "with an offset"),
        ("$$->>'Body' = timestamptz '1000-01-01T00:00:00+0100'", 1, 27, "years 1000"),
        ("$$->'Body' < timestamptz '2022-12-12T00:00:00Z'", 1, 14, "end the path with ->>"),
        ("$$->'Body' in (1, timestamptz '2022-12-12T00:00:00Z')", 1, 12, "end the path with ->>"),
        ("$$->>'Body' = timestamptz 5", 1, 27, "a time in single quotes is expected"),
        (f"{A} AND\n  $$->'Body'", 2, 3, "compare it"),
        ("$$->'body'->>'x' = 'a'", 1, 5, "'Header' and 'Body'"),
        ("$$->0 = 'a'", 1, 5, "'Header' and 'Body'"),
        ("$$ ? 'Body'", 1, 1, "'Header' and 'Body'"),
        ("$$->'Body'->>'x' = 'a", 1, 20, "closing quote"),
        ("$$->'Body'->>'x' = ‘a", 1, 20, "closing quote"),
        ("$$->'Body'->>'x' == 'a'", 1, 19, "single ="),
        ("$$->'Body'->>'x' = \"a\"", 1, 20, "single quotes"),
        ("$$->'Body'->>'x' = “a”", 1, 20, "single quotes"),
        ("$$->'Body'->>'x' = open", 1, 20, "single quotes"),
        ("$$->'Body'->>x = 'a'", 1, 14, "single quotes"),
        ("$$.Body.x = 'a'", 1, 3, "->"),
        ("$->'Body'->>'x' = 'a'", 1, 1, "$$"),
        (f"{A} && {B}", 1, 24, "AND"),
        (f"{A} || {B}", 1, 24, "OR"),
        ("$$->'Body'->>'x' > 5::int", 1, 21, "casts"),
        ("$$->'Body'->>'x'->'y' = 'a'", 1, 17, "every step but the last"),
        ("'x'->'y' = 'a'", 1, 1, "path"),
        ("$$->'Body'->1.0 = 3", 1, 13, "whole number"),
        ("$$->'Body'->2147483648 = 3", 1, 13, "whole number"),
        ("$$->'Body'->>'x' ? 'a'", 1, 18, "->"),
        ("$$->'Body' ? 5", 1, 14, "name in single quotes"),
        (f"{A} AND", 1, 27, "not finished"),
        ("$$->'Body'->>'x' =\n", 1, 19, "not finished"),
        (f"({A}", 1, 24, "closing parenthesis"),
        (f"{A})", 1, 23, "never opened"),
        ("$$->'Body'->>'x' 'a'", 1, 18, "operator"),
        (f"{A} {B}", 1, 24, "AND or OR"),
        ("$$->'Body'->>'x' is 'a'", 1, 21, "null or not null"),
        ("$$->'Body'->>'x' in 'a'", 1, 21, "list in parentheses"),
        ("$$->'Body'->>'x' in ()", 1, 22, "value"),
        ("$$->'Body'->>'x' in ('a', $$->'Body'->>'y')", 1, 27, "compare two paths"),
        ("$$->'Body'->>'x' not 'a'", 1, 22, "in or like"),
        ("$$->'Body'->'x' like 'a'", 1, 17, "->>"),
        ("$$->'Body'->>'x' like 5", 1, 23, "pattern"),
        ("$$->'Body'->>'x' like 'a\\'", 1, 23, "\\\\"),
        ("$$->'Body'->>'x' = $$->'Body'->'x'", 1, 20, "both paths"),
        ("$$->'Body'->'x' >= true", 1, 20, "no order"),
        ("1 = 1", 1, 5, "path"),
        ("'a' is null", 1, 1, "path"),
        (f"({A}) = 'x'", 1, 2, "condition, not a value"),
        ("$$->'Body'->>'x' = 1e999999999999", 1, 20, "1000 digits"),
        ("$$->'Body'->>'x' = '\0'", 1, 21, "not text"),
        ("$$->'Body'->>'x' = 'a'\n or '\ud800'", 2, 6, "not text"),
        ("$$->'Body'" + "->0" * 101 + " = 1", 1, 311, "steps"),
        ("\n" + "(" * 51 + A, 2, 51, "parentheses"),
        (A + " " * 10_000, 1, 10_001, "longer than"),
        ("x" * 5000, 1, 1, "x…"),
    ],
)
def test_an_error_is_reported_at_its_position(
    text: str, line: int, column: int, advice: str
) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert (caught.value.line, caught.value.column) == (line, column), caught.value
    assert advice in caught.value.message
    assert len(caught.value.message) < 120


def test_the_longest_and_deepest_filters_are_accepted() -> None:
    assert parse_filter(A + " " * (10_000 - len(A))) == a("A")
    assert parse_filter("(" * 50 + A + ")" * 50) == a("A")
    assert parse_filter("not " * 2400 + A) == a("A")


def test_a_path_alone_is_read_as_a_path() -> None:
    assert parse_path("$$->'Body'->'order'->>'id'") == body_text("order", "id")
    with pytest.raises(FilterError, match="not a value"):
        parse_path(A)
