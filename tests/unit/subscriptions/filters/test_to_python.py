"""The results of filters, claim by claim. `test_agreement.py` shows that PostgreSQL agrees."""

import json
from typing import Any

import pytest

from subscriptions.filters import (
    FilterError,
    document,
    header_name,
    identity_at,
    jsonb,
    parse_filter,
    parse_path,
    text_at,
    to_python,
)
from subscriptions.filters.document import Document

BODY = {
    "project": {"id": "proj1008", "size": 5},
    "before": {"effort": 5, "tags": ["a", "b"], "gone": None},
    "after": {"effort": 5.0, "tags": ["b", "a"], "gone": 1},
    "number": 10,
    "digits": "9",
    "flag": True,
    "none": None,
    "list": ["x", 1, {"y": 2}],
    "title": "50% of a_b\nand more",
}
HEADERS = {"FILTER_STRING": "release", "Priority": "high", "Retries": "3"}


def ask(text: str, body: Any = BODY) -> bool:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return to_python(parse_filter(text))(document(HEADERS, raw))


@pytest.mark.parametrize(
    "text",
    [
        (
            "$$->'Body'->'project'->>'id' = 'proj1008' "
            "AND NOT $$->'Header'->>'Priority' in ('low','none')"
        ),
        "$$->'Body'->'project'->>'id' in ('proj1010', 'proj1008')",
        "$$->'Body'->'before'->'tags' != $$->'Body'->'after'->'tags'",
        "$$->'Body'->'before'->'effort' = $$->'Body'->'after'->'effort'",
        "$$->'Body'->'before'->'gone' != $$->'Body'->'after'->'gone'",
        "$$->'Header'->>'filter-string' = 'release'",
        "$$->'Header' ? 'Filter_String' and $$->'Body' ? 'number'",
        "$$->'Body'->'list'->>0 = 'x' and $$->'Body'->'list'->-1->'y' = 2",
        "$$->'Body'->'list' ? 'x'",
        "$$->'Body'->'number' = 10.0 and $$->'Body'->'number' > 9 and 11 > $$->'Body'->'number'",
        "$$->'Body'->>'number' > 9 and $$->'Body'->>'digits' < 10",
        "$$->'Body'->>'number' < '9'",
        "$$->'Header'->>'Retries' >= 3",
        "$$->'Body'->'flag' = true and $$->'Body'->>'flag' = true and $$->'Body'->>'flag' = 'true'",
        "$$->'Body'->>'none' is null and $$->'Body'->'none' is not null",
        "$$->'Body'->'nowhere'->5->>'x' is null",
        "$$->'Body'->>'title' like '50\\% of a\\_b%' and $$->'Body'->>'title' not like 'of'",
        "$$->'Body'->>'title' like '%of%a__\nand%e'",
        "$$->>'Body' like '%\"proj1008\"%'",
        "$$->'Body'->'project' = $$->'Body'->'project'",
    ],
)
def test_true_filters_match(text: str) -> None:
    assert ask(text)


@pytest.mark.parametrize(
    "condition",
    [
        "$$->'Body'->>'missing' = 'x'",
        "$$->'Body'->>'missing' != 'x'",
        "$$->'Body'->>'missing' in ('x')",
        "$$->'Body'->>'missing' like '%'",
        "$$->'Body'->'missing' ? 'x'",
        "$$->'Body'->'missing' != $$->'Body'->'number'",
        "$$->'Body'->>'none' = $$->'Body'->>'none'",
        "$$->'Body'->>'number' = null",
        "$$->'Body'->>'number' in ('x', null)",
        "$$->'Body'->>'title' > 5",
        "$$->'Body'->>'number' = true",
        "$$->'Body'->'flag' > 5",
        "$$->'Body'->'digits' > 5",
        "$$->'Body'->'list' < $$->'Body'->'number'",
    ],
)
def test_null_matches_neither_a_condition_nor_its_negation(condition: str) -> None:
    assert not ask(condition)
    assert not ask(f"not {condition}")


def test_null_counts_only_where_it_decides() -> None:
    null = "$$->'Body'->>'missing' = 'x'"
    assert ask(f"{null} or $$->'Body' ? 'number'")
    assert ask(f"not ({null} and $$->'Body' ? 'missing')")
    assert not ask(f"not ({null} and $$->'Body' ? 'number')")


def test_json_of_different_types_differs_instead_of_being_null() -> None:
    assert ask(
        "$$->'Body'->'digits' != 9 and $$->'Body'->'flag' != 1 and not $$->'Body'->'none' = 'x'"
    )
    assert ask("$$->'Body'->'list' != $$->'Body'->'flag'")


def test_truth_is_not_the_number_one_however_deep_it_lies() -> None:
    assert ask("$$->'Body'->'a' != $$->'Body'->'b'", {"a": [{"x": True}], "b": [{"x": 1}]})


@pytest.mark.parametrize(
    "body", [b"", b"plain", b'{"a": NaN}', b'"\\u0000"', b'"\\ud800"', b"\xff", b"[" * 60_000]
)
def test_a_body_that_is_not_json_is_missing(body: bytes) -> None:
    assert ask("$$->'Body' is null and $$->'Header'->>'Priority' = 'high'", body)


def test_nesting_is_read_to_the_same_depth_everywhere() -> None:
    deepest = b"[" * jsonb.MAX_DEPTH + b"1" + b"]" * jsonb.MAX_DEPTH
    assert ask("$$->'Body' is not null", deepest)
    assert ask("$$->'Body' is null", b"[" + deepest + b"]")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("-0", "0"),
        ("-0.0", "0.0"),
        ("1.0", "1.0"),
        ("1e2", "100"),
        ("1.50e1", "15.0"),
        ("1E-7", "0.0000001"),
        ("12345678901234567890.10", "12345678901234567890.10"),
        (
            '{"bb": 1, "a" : [true,null], "é": "é\\u00e9\\n", "a": 2}',
            '{"a": 2, "bb": 1, "é": "éé\\n"}',
        ),
        ('"text"', "text"),
        ("null", None),
        ("1e131072", None),
    ],
)
def test_text_is_printed_as_jsonb_prints_it(written: str, printed: str | None) -> None:
    assert text_at(parse_path("$$->>'Body'"))(document({}, written.encode())) == printed


def test_only_texts_that_are_numbers_compare_as_numbers() -> None:
    for text in ["5", "5.0", "0.5e1", "-1", "1e400"]:
        assert ask("$$->'Body'->>'a' != 7", {"a": text})
    for text in [
        "",
        " 5",
        "5 ",
        "+5",
        "05",
        ".5",
        "5.",
        "0x5",
        "NaN",
        "٥",
        "5\n",
        "1e10000",
        "1" * 1001,
    ]:
        assert not ask("$$->'Body'->>'a' != 7", {"a": text})


def test_text_is_ordered_by_its_bytes() -> None:
    assert ask(
        "$$->'Body'->>0 < $$->'Body'->>1 and $$->'Body'->>1 < $$->'Body'->>2", ["Z", "a", "é"]
    )
    assert ask("$$->'Body'->>0 < $$->'Body'->>1", ["\ue000", "\U00010000"])


def test_the_body_is_parsed_once_and_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def counted(body: bytes) -> jsonb.Json:
        parsed.append(body)
        return {"a": 1}

    monkeypatch.setattr(jsonb, "parse_jsonb", counted)
    message: Document = document(HEADERS, b"{}")
    assert to_python(parse_filter("$$->'Header'->>'Priority' = 'high'"))(message)
    assert parsed == []
    assert to_python(parse_filter("$$->'Body'->'a' = 1 and $$->'Body'->>'a' = 1"))(message)
    assert parsed == [b"{}"]


def test_a_body_with_endless_numbers_is_missing() -> None:
    number = b"1e131071"
    assert ask("$$->'Body' is not null", b"[" + b",".join([number] * 7) + b"]")
    assert ask("$$->'Body' is null", b"[" + b",".join([number] * 8) + b"]")
    # Written out, they take no more characters than they have bytes.
    assert ask("$$->'Body' is not null", b"[" + b"9" * 100_000 + b",1" * 1_000_000 + b"]")


@pytest.fixture
def printed_texts(monkeypatch: pytest.MonkeyPatch) -> list[jsonb.Json]:
    """Record the texts that are printed from now on, as `->>` does."""
    printed: list[jsonb.Json] = []
    original = jsonb.printed_text

    def counted(value: jsonb.Json) -> str:
        printed.append(value)
        return original(value)

    monkeypatch.setattr(jsonb, "printed_text", counted)
    return printed


@pytest.mark.parametrize("value", [[1, [2]], {"a": 1}])
def test_a_container_is_not_printed_to_compare_it_with_a_literal_that_begins_otherwise(
    printed_texts: list[jsonb.Json], value: object
) -> None:
    message = document(HEADERS, json.dumps({"id": value}).encode())
    conditions = [
        "= 'proj1'",
        "!= ''",
        "in ('a', 'b')",
        "> 'proj1'",
        "= 5",
        "< 5",
        "= true",
        "not in (5, 'x')",
    ]
    answers = [
        to_python(parse_filter(f"$$->'Body'->>'id' {condition}"))(message)
        for condition in conditions
    ]
    assert answers == [False, True, False, json.dumps(value)[0] == "{", False, False, False, False]
    assert printed_texts == []


def test_a_container_is_printed_once_for_all_filters_of_a_message(
    printed_texts: list[jsonb.Json],
) -> None:
    message = document(HEADERS, b'{"id": [1, [2]]}')
    for number in range(61):
        assert to_python(
            parse_filter(f"$$->'Body'->>'id' not like '%{number}%{number}%{number}%'")
        )(message)
        assert not to_python(parse_filter(f"$$->'Body'->>'id' = '[{number}]'"))(message)
    assert to_python(parse_filter("$$->'Body'->>'id' = '[1, [2]]'"))(message)
    assert printed_texts.count([1, [2]]) == 1


def test_a_container_that_identifies_is_printed_once_for_all_subscriptions(
    printed_texts: list[jsonb.Json],
) -> None:
    message = document(HEADERS, b'{"id": [1, [2]]}')
    identities = [identity_at(parse_path("$$->'Body'->'id'"))(message) for _ in range(3)]
    assert identities == ["[1, [2]]"] * 3
    assert printed_texts.count([1, [2]]) == 1


def test_a_long_part_with_a_placeholder_is_refused() -> None:
    assert ask("$$->'Body'->>'a' like '%" + "a_" * 50 + "%'", {"a": "ab" * 50})
    with pytest.raises(FilterError, match="has at most 100 characters"):
        parse_filter("$$->'Body'->>'a' like '%" + "a_" * 50 + "a%'")
    # At the ends it is searched in one place only.
    assert ask("$$->'Body'->>'a' like '" + "a_" * 100 + "%" + "_b" * 100 + "'", {"a": "ab" * 200})


def test_many_wildcards_do_not_make_a_pattern_slow() -> None:
    # Plain backtracking would practically never end.
    assert not ask("$$->'Body'->>'a' like '" + "%a" * 40 + "%b'", {"a": "a" * 50_000})


def test_header_names_have_one_spelling() -> None:
    assert {header_name(name) for name in ("FILTER_STRING", "Filter-String", "filter_string")} == {
        "filter-string"
    }
