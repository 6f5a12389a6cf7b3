"""Checking a body against a schema ends soon, and agrees with JSON Schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from delivery.publishing import json_schema as schema
from delivery.publishing import json_schema_keywords
from delivery.publishing.json_schema import Violation, first_violation
from delivery.publishing.json_schema_keywords import BoundedValidator
from subscriptions.models import EventType


def violation(json_schema: Any, value: Any) -> Violation | None:
    return first_violation(EventType(name="A", json_schema=json_schema), value)


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3)
    | st.sampled_from(["", "a", "ab", "b1"])
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "ab", "b", "x1"]), inner, max_size=4)
    ),
    max_leaves=8,
)
_schemas = st.sampled_from(
    [
        {"uniqueItems": True},
        {"uniqueItems": False},
        {"items": {"uniqueItems": True}},
        {"pattern": "^a"},
        {"items": {"pattern": "b$"}},
        {"patternProperties": {"^a": {"type": "string"}, "b": {"type": "number"}}},
        {"properties": {"a": {}}, "patternProperties": {"^x": True}, "additionalProperties": False},
        {"properties": {"a": {}}, "additionalProperties": {"type": "array", "uniqueItems": True}},
        {"additionalProperties": True},
        {"prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
        {
            "prefixItems": [True],
            "anyOf": [{"prefixItems": [True, True]}, True],
            "unevaluatedItems": False,
        },
        {"properties": {"a": True}, "unevaluatedProperties": {"type": "string"}},
        {
            "properties": {"a": True},
            "allOf": [{"properties": {"b": True}}],
            "unevaluatedProperties": False,
        },
    ]
)


@given(_schemas, _values)
def test_the_keywords_give_the_librarys_messages(json_schema: Any, value: Any) -> None:
    assert BoundedValidator(json_schema).is_valid(value) is Draft202012Validator(
        json_schema
    ).is_valid(value)


@pytest.mark.parametrize("number", [1, 1.0])
def test_equal_elements_are_found_however_they_are_written(number: float) -> None:
    assert (
        violation({"uniqueItems": True}, [{"a": 1, "b": [2.0]}, {"b": [2], "a": number}])
        is not None
    )
    assert (
        violation({"uniqueItems": True}, [1, True, "1", [1], 1.5, None, "null", 0, False]) is None
    )


def test_many_elements_are_compared_in_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    original = json_schema_keywords._plain

    def counted(item: Any) -> Any:
        made.append(item)
        return original(item)

    monkeypatch.setattr(json_schema_keywords, "_plain", counted)
    assert violation({"uniqueItems": True}, [{"i": number} for number in range(20_000)]) is None
    assert sum(set(item) == {"i"} for item in made if isinstance(item, dict)) == 20_000


def test_a_pattern_that_would_never_end_ends() -> None:
    found = violation({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 10_000 + "!"})
    assert found is not None
    assert found.path == "$.a"
    for keyword in ({"additionalProperties": False}, {}):
        json_schema = {"patternProperties": {"^(a+)+$": False}} | keyword
        assert (violation(json_schema, {"a" * 10_000 + "!": 1}) is None) is not bool(keyword)


def test_only_a_few_of_many_violations_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Any] = []
    original = best_match

    def counted(errors: Any) -> Any:
        found = list(errors)
        judged.extend(found)
        return original(found)

    monkeypatch.setattr(schema, "best_match", counted)
    assert violation({"items": {"type": "string"}}, list(range(10_000))) is not None
    assert len(judged) == schema.MAX_VIOLATIONS


def test_a_slow_check_is_aborted_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MAX_SECONDS", 0.0)
    found = violation({"items": {"type": "string"}}, ["a"] * 10)
    assert found is not None
    assert found.path == "$"
    assert "takes more than 0 s" in found.message


def test_a_search_that_may_take_too_long_is_not_begun() -> None:
    found = violation({"items": {"pattern": "[ab]*a[ab]{5000}c"}}, ["ab", "ab" * 100_000])
    assert found is not None
    assert found.path == "$"
    assert "takes more than 2 s" in found.message


def test_an_unsupported_stored_pattern_is_reported() -> None:
    found = violation({"pattern": r"(a)\1"}, "aa")
    assert found is not None
    assert "no longer supported" in found.message
