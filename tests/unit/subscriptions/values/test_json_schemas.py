"""Enforceable JSON Schemas: validating with them always ends and never uses the network."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from subscriptions.values.json_schemas import JSONSchemaError, check_json_schema


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "required": ["a"]},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/a"},
        {"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
        {"$defs": {"a/b": {"type": "string"}}, "$ref": "#/$defs/a~1b"},
        {"$defs": {"a": {"$anchor": "name"}}, "$ref": "#name"},
        {"properties": {"child": {"$ref": "#"}}},
        {"properties": {"$ref": {"type": "string"}}},
        {"enum": [{"$ref": "https://example.com/"}], "default": {"$id": "x"}},
        {
            "properties": {"enum": {"$ref": "#/$defs/not"}, "$id": {}},
            "$defs": {"not": {"type": "null"}},
        },
    ],
)
def test_a_complete_schema_is_accepted(schema: dict[str, Any]) -> None:
    check_json_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        True,
        {"type": 1},
        {"maximum": 10**30},
        {"patternProperties": {"(": {}}},
        {"items": {"pattern": r"(a)\1"}},
        {"patternProperties": {"(?=a)b": {}}},
        {"patternProperties": {"a": {}}, "items": {"unevaluatedProperties": False}},
        {"$ref": "other.json"},
        {"$ref": "//example.com/x"},
        {"$dynamicRef": "https://example.com/x"},
        {"$ref": "#/$defs/a"},
        {"properties": {"enum": {"$ref": "https://example.com/x"}}},
        {"$ref": "#name"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"if": {"$ref": "#"}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{}, {"$ref": "#/$defs/a"}]}}},
        {"properties": {"a": {"$id": "https://example.com/", "$ref": "#"}}},
    ],
)
def test_a_schema_that_is_not_is_refused(schema: Any) -> None:
    with pytest.raises(JSONSchemaError):
        check_json_schema(schema)


INSTANCES: list[Any] = [None, {}, {"p": {"p": {}}}, [[], [{}]], {"p": [{"p": 1}]}]


def test_a_schema_that_is_nested_too_deep_for_the_validator_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(500):
        schema = {"not": schema}
    with pytest.raises(JSONSchemaError, match="deep"):
        check_json_schema(schema)


def test_a_long_chain_of_references_is_checked_in_no_time() -> None:
    chain: dict[str, Any] = {
        f"a{number}": {"$ref": f"#/$defs/a{number + 1}"} for number in range(2000)
    }
    with pytest.raises(JSONSchemaError, match="nowhere"):
        check_json_schema({"$defs": chain})


_references = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/p"])
_schemas = st.recursive(
    st.just({}) | st.fixed_dictionaries({"$ref": _references}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "items": inner,
            "properties": st.fixed_dictionaries({"p": inner}),
            "$defs": st.fixed_dictionaries({"a": inner, "b": inner}),
        },
    ),
    max_leaves=6,
)


@given(_schemas)
def test_validation_with_an_accepted_schema_ends(schema: dict[str, Any]) -> None:
    try:
        check_json_schema(schema)
    except JSONSchemaError:
        return
    for instance in INSTANCES:
        Draft202012Validator(schema).is_valid(instance)
