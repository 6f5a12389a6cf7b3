"""Two messages have the same identity exactly if a filter finds their values equal."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from subscriptions.filters import document, identity_at, jsonb, parse_path
from tests.unit.subscriptions.filters.random_messages import json_texts

WHOLE = identity_at(parse_path("$$->'Body'"))
ID = identity_at(parse_path("$$->'Body'->'id'"))
ID_AS_TEXT = identity_at(parse_path("$$->'Body'->>'id'"))


@given(json_texts, json_texts)
def test_equal_values_and_no_others_have_one_identity(first: str, second: str) -> None:
    left, right = jsonb.parse_jsonb(first.encode()), jsonb.parse_jsonb(second.encode())
    assume(left is not jsonb.MISSING and right is not jsonb.MISSING)
    assert not isinstance(left, jsonb.Missing)
    assert not isinstance(right, jsonb.Missing)
    are_equal = jsonb.is_equal(left, right)
    assert (jsonb.canonical_text(left) == jsonb.canonical_text(right)) is are_equal


NUMBERS = st.one_of(st.integers(-200, 200), st.decimals(-20, 20, places=2))


@given(NUMBERS, NUMBERS, st.sampled_from(["", "0", "00"]), st.sampled_from(["", "e0", "e+00"]))
def test_numbers_differ_by_their_value_only(
    first: object, second: object, zeros: str, end: str
) -> None:
    spelled = f"{first}{zeros if '.' in str(first) else ''}{end}"
    left, right = jsonb.parse_jsonb(spelled.encode()), jsonb.parse_jsonb(str(second).encode())
    assume(left is not jsonb.MISSING)
    assert not isinstance(left, jsonb.Missing)
    assert not isinstance(right, jsonb.Missing)
    assert (jsonb.canonical_text(left) == jsonb.canonical_text(right)) is (first == second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b'{"id": 1}', b'{"id": 1.0, "other": 2}'),
        (b'{"id": {"a": 1, "b": [1e2]}}', b'{"id": {"b": [100], "a": 1.00}}'),
        (b'{"id": "\\u00e9"}', '{"id": "é"}'.encode()),
    ],
)
def test_json_is_identified_by_its_value(first: bytes, second: bytes) -> None:
    assert ID(document({}, first)) == ID(document({}, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b'{"id": 1}', b'{"id": "1"}'),
        (b'{"id": true}', b'{"id": "true"}'),
        (b'{"id": 1}', b'{"id": true}'),
    ],
)
def test_values_of_different_types_differ_as_json(first: bytes, second: bytes) -> None:
    assert ID(document({}, first)) != ID(document({}, second))


def test_as_text_a_number_equals_its_digits() -> None:
    assert ID_AS_TEXT(document({}, b'{"id": 1}')) == ID_AS_TEXT(document({}, b'{"id": "1"}')) == "1"


@pytest.mark.parametrize("body", [b"{}", b'{"id": null}', b"[]", b"not JSON", b"", b'"id"'])
def test_a_missing_value_has_no_identity(body: bytes) -> None:
    assert ID(document({}, body)) is None
    assert ID_AS_TEXT(document({}, body)) is None


def test_a_whole_body_can_be_the_identity() -> None:
    assert WHOLE(document({}, b'{"a":1,"b":2}')) == WHOLE(document({}, b'{ "b": 2.0, "a": 1 }'))
