"""Workfront's contains and notContains look for elements of arrays, and for parts of texts."""

from typing import Any

import pytest

from tests.unit.delivery.vendors.workfront.test_translate import matches, one


@pytest.mark.parametrize(
    ("name", "comparison", "value", "expected"),
    [
        ("long", "contains", "Choice 1", False),
        ("long", "contains", "Choice 10", True),
        ("long", "contains", ["Choice 1", "Choice 2"], True),
        ("long", "contains", "[", False),
        ("long", "notContains", "Choice 1", True),
        ("long", "notContains", "Choice 10", False),
        ("long", "notContains", ["Choice 1", "Choice 2"], False),
        ("numbers", "contains", 9007199254740993, True),
        ("numbers", "contains", "9007199254740993", True),
        ("numbers", "contains", 9007199254740992, False),
        ("numbers", "contains", "7", True),
        ("numbers", "notContains", 7, False),
        ("numbers", "notContains", 70, True),
        ("priority", "contains", 2, True),
        ("tags", "contains", {"objID": "6229be41"}, True),
        ("tags", "contains", {"objID": "6229be41", "n": {"a": 1}}, True),
        ("tags", "contains", {"objID": "6229"}, False),
        ("tags", "contains", {"objID": "6229be41", "name": "Other"}, False),
        ("tags", "contains", [{"objID": "none"}, {"name": "Other"}], True),
        ("tags", "notContains", {"objID": "6229be41"}, False),
        ("tags", "notContains", {"objID": "6229be41", "name": "Other"}, True),
        ("tags", "notContains", {"objID": "none"}, True),
        ("missing", "contains", {"objID": "6229be41"}, False),
        ("missing", "notContains", {"objID": "6229be41"}, True),
        ("parameterValues", "notContains", {"DE: customField": "Value"}, False),
        ("parameterValues", "notContains", {"DE: customField": "values"}, True),
    ],
)
def test_an_array_contains_its_elements(
    name: str, comparison: str, value: Any, expected: bool
) -> None:
    assert matches(one(name, comparison, value)) is expected
