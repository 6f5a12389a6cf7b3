"""Workfront's filters translated to Inturn's: their matches, and refusals with a reason."""

from typing import Any

import orjson
import pytest

from delivery.vendors.workfront.translate import Translation, translate_document
from subscriptions.filters import document, parse_filter, to_python

NEW: dict[str, Any] = {
    "ID": "59d7ddf7",
    "name": "50% of O'Brien_x",
    "status": "CUR",
    "priority": 2,
    "isComplete": True,
    "ownerID": None,
    "entryDate": "2017-10-06T13:48:07.776-0600",
    "groups": ["a", "b"],
    "one": ["a"],
    "long": ["Choice 10", "Choice 2"],
    "numbers": [7, 9007199254740993],
    "tags": [{"objID": "6229be41", "name": "Tag", "n": {"a": 1, "b": 2}}, {"name": "Other"}],
    "parameterValues": {"DE: customField": "customValue", "DE: n": 5},
}
OLD = NEW | {
    "status": "NEW",
    "priority": 1,
    "ownerID": None,
    "parameterValues": {"DE: customField": "other"},
}


def given(*filters: Any, **fields: Any) -> dict[str, Any]:
    return {"objCode": "PROJ", "eventType": "UPDATE", "filters": list(filters)} | fields


def one(
    name: str, comparison: str | None = None, value: Any = None, **fields: Any
) -> dict[str, Any]:
    compared = {} if comparison is None else {"comparison": comparison}
    return {"fieldName": name, "fieldValue": value} | compared | fields


def translated(*filters: Any, **fields: Any) -> Translation:
    found = translate_document(given(*filters, **fields))
    assert found.reasons == []
    return found


def matches(*filters: Any, new: Any = NEW, old: Any = OLD, **fields: Any) -> bool:
    text = translated(*filters, **fields).filter
    payload = orjson.dumps({"eventType": "UPDATE", "newState": new, "oldState": old})
    return not text or to_python(parse_filter(text))(document({}, payload))


def refused(*filters: Any, **fields: Any) -> set[str]:
    return {reason.field for reason in translate_document(given(*filters, **fields)).reasons}


def test_the_event_type_is_of_object_and_event() -> None:
    found = translated()
    assert (found.event_type, found.filter) == ("Workfront.PROJ.UPDATE", "")


def test_the_vendors_example_is_a_readable_filter() -> None:
    found = translated(
        one("projectID", value="5db1e0ec"),
        one("parameterValues", value={"DE: customField": "customValue"}),
    )
    assert found.filter == (
        "$$->'Body'->'newState'->>'projectID' = '5db1e0ec'"
        " AND $$->'Body'->'newState'->'parameterValues'->>'DE: customField' = 'customValue'"
    )


def test_one_object_is_found_by_its_id() -> None:
    assert matches(objId="59d7ddf7")
    assert not matches(objId="another")
    deleted = {"objId": "59d7ddf7", "eventType": "DELETE"}
    assert matches(new={}, old=OLD, **deleted)
    assert matches(new=NEW, old={}, **deleted)


@pytest.mark.parametrize(
    ("name", "comparison", "value", "expected"),
    [
        ("status", None, "CUR", True),
        ("status", "eq", "cur", False),
        ("missing", "eq", "x", False),
        ("ownerID", "eq", None, True),
        ("status", "eq", None, False),
        ("priority", "eq", 2, True),
        ("priority", "eq", "2", True),
        ("isComplete", "eq", True, True),
        ("isComplete", "eq", "true", True),
        ("isComplete", "eq", False, False),
        ("status", "ne", "CUR", False),
        ("status", "ne", "NEW", True),
        ("missing", "ne", "x", True),
        ("ownerID", "ne", "x", True),
        ("ownerID", "ne", None, False),
        ("status", "ne", True, True),
        ("priority", "gt", 1, True),
        ("priority", "gt", "10", False),
        ("priority", "gte", 2.0, True),
        ("priority", "lt", 2.5, True),
        ("priority", "lte", "1.5", False),
        ("missing", "lt", 1, False),
        ("entryDate", "gt", "2017-10-06", True),
        ("entryDate", "lt", "2017-10-06", False),
        ("name", "contains", "50% of O'B", True),
        ("name", "contains", "50 of", False),
        ("name", "contains", "Brien_x", True),
        ("name", "contains", "BrienQx", False),
        ("name", "contains", "o'brien", False),
        ("name", "contains", "\\", False),
        ("missing", "contains", "x", False),
        ("groups", "contains", "a", True),
        ("groups", "contains", "A", False),
        ("name", "notContains", "%%", True),
        ("name", "notContains", "O'Brien", False),
        ("name", "notContains", ["z", "O'Brien"], False),
        ("name", "notContains", ["y", "z"], True),
        ("missing", "notContains", "x", True),
        ("groups", "containsOnly", ["b", "a"], True),
        ("groups", "containsOnly", ["a", "b", "a"], True),
        ("groups", "containsOnly", ["a"], False),
        ("groups", "containsOnly", ["a", "b", "c"], False),
        ("one", "containsOnly", "a", True),
        ("numbers", "containsOnly", [7, 9007199254740993], True),
        ("numbers", "containsOnly", ["7", "9007199254740993"], True),
        ("numbers", "containsOnly", 7, False),
        ("priority", "containsOnly", 2, True),
        ("entryDate", "gt", "2017-10-06T19:48:07.775Z", True),
        ("entryDate", "gt", "2017-10-06T19:48:07.776Z", False),
        ("entryDate", "gte", "2017-10-06T21:48:07.776+0200", True),
        ("entryDate", "lt", "2017-10-06T20:00:00+00:00", True),
        ("entryDate", "lte", "2017-10-06T12:48:07:776-0700", True),
        ("entryDate", "eq", "2017-10-06T19:48:07.776Z", True),
        ("entryDate", "ne", "2017-10-06T19:48:07.776Z", False),
        ("entryDate", "ne", "2017-10-06T19:48:07.777Z", True),
        ("status", "ne", "2017-10-06T19:48:07.777Z", True),
        ("missing", "ne", "2017-10-06T19:48:07.777Z", True),
        ("status", "gt", "2017-10-06T19:48:07.777Z", False),
        ("status", "containsOnly", "CUR", True),
        ("status", "containsOnly", ["CUR", "NEW"], False),
        ("parameterValues", "containsOnly", "DE: n", False),
        ("missing", "containsOnly", "a", False),
        ("parameterValues", "eq", {"DE: customField": "customValue", "DE: n": 5}, True),
        ("parameterValues", "eq", {"DE: customField": "customValue", "DE: n": 6}, False),
        ("parameterValues", "contains", {"DE: customField": "Value"}, True),
        ("status", "changed", None, True),
        ("name", "changed", None, False),
        ("ownerID", "changed", None, False),
        ("groups", "changed", "ignored", False),
        ("missing", "changed", None, False),
        ("parameterValues", "changed", None, True),
    ],
)
def test_what_a_comparison_matches(
    name: str, comparison: str | None, value: Any, expected: bool
) -> None:
    assert matches(one(name, comparison, value)) is expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {}, True),
        ({}, {"a": 1}, True),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": 0}, True),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, False),
        ({"a": ["x"]}, {"a": ["y"]}, True),
    ],
)
def test_what_is_changed(new: Any, old: Any, expected: bool) -> None:
    assert matches(one("a", "changed"), new=new, old=old) is expected


def test_old_and_new_states_are_asked_apart() -> None:
    was_new, is_current = (
        one("status", value="NEW", state="oldState"),
        one("status", value="CUR", state="newState"),
    )
    assert matches(was_new, is_current)
    assert not matches(one("status", value="CUR", state="oldState"))


def test_connectors_and_groups() -> None:
    yes, no = one("status", value="CUR"), one("status", value="DED")
    assert not matches(yes, no)
    assert matches(yes, no, filterConnector="OR")
    either = {"type": "group", "connector": "OR", "filters": [no, yes]}
    both = {"type": "group", "connector": "AND", "filters": [no, yes]}
    assert matches(yes, either)
    assert not matches(either, both)
    assert matches(either, both, filterConnector="OR")


@pytest.mark.parametrize(
    "value", ["'; DROP", "' OR '1'='1", "''", "$$->'Body'", "’x’", "ü\U0001f600"]
)
def test_no_value_ends_its_string(value: str) -> None:
    assert matches(one("a", value=value), new={"a": value})
    assert matches(one("a", "contains", value), new={"a": f"x{value}y"})
    assert not matches(one("a", value=value), new={"a": "x"})
    assert matches(one(value, value="x"), new={value: "x"})


def test_other_decisions_of_inturn_are_reported() -> None:
    assert translated(one("groups", "contains", ["a", "b"])).differences == [
        "groups contains: of several values one is enough to be contained; "
        "Workfront documents one value"
    ]
    assert translated(one("entryDate", "gt", "2017-10-06")).differences == [
        "entryDate gt: a date without a time and an offset compares as text; "
        "give both to compare moments"
    ]
    for comparison in ("eq", "contains", "gt"):
        assert translated(one("status", comparison, "a")).differences == []


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (given(objCode="proj"), "objCode"),
        (given(objCode=None), "objCode"),
        (given(objCode="A" * 31), "objCode"),
        (given(eventType="SHARE"), "eventType"),
        (given(eventType=None), "eventType"),
        (given(objId=7), "objId"),
        (given(base64Encoding="yes"), "base64Encoding"),
        (given(base64Encoding=[True]), "base64Encoding"),
        (given(base64Encoding=7), "base64Encoding"),
        (given(version="v1"), "version"),
        (given(filters={}), ""),
        (given(filters="x"), "filters"),
        (given(filterConnector="XOR"), "filterConnector"),
        (given("x"), "filters.0"),
        (given({"fieldValue": "x"}), "filters.0.fieldName"),
        (given({"fieldName": "x"}), "filters.0.fieldValue"),
        (given(one("a", "like", "x")), "filters.0.comparison"),
        (given(one("a", value="x", state="anyState")), "filters.0.state"),
        (given(one("a", value="x", more=1)), "filters.0.more"),
        (given(one("a", value=[1])), "filters.0.fieldValue"),
        (given(one("a", value={})), "filters.0.fieldValue"),
        (given(one("a", "gt", True)), "filters.0.fieldValue"),
        (given(one("a", "contains", "")), "filters.0.fieldValue"),
        (given(one("a", "notContains", [])), "filters.0.fieldValue"),
        (given(one("a", "containsOnly", [])), "filters.0.fieldValue"),
        (given(one("a", "containsOnly", [1, None])), "filters.0.fieldValue"),
        (given(one("a", "containsOnly", True)), "filters.0.fieldValue"),
        (given(one("a", "contains", ["a", ""])), "filters.0.fieldValue"),
        (given(one("a", "contains", "x\0")), "filters.0.fieldValue"),
        (given(objCode="approval_step"), "objCode"),
        (given(one("a", value="x" * 20_000)), "filters"),
        (given(one("a", value="x\0")), "filters"),
    ],
)
def test_what_cannot_be_said_is_refused_with_a_reason(document: dict[str, Any], field: str) -> None:
    reasons = translate_document(document).reasons
    assert {reason.field for reason in reasons} == ({field} if field else set())
    assert all(reason.detail for reason in reasons)


def test_the_old_state_of_what_is_created_is_refused() -> None:
    assert refused(one("a", value="x", state="oldState"), eventType="CREATE") == {"filters.0.state"}


def test_groups_have_bounds() -> None:
    leaf = one("a", value="x")
    assert refused({"type": "group", "filters": [leaf]}) == {"filters.0.filters"}
    assert refused({"type": "group", "filters": [leaf] * 6}) == {"filters.0.filters"}
    group = {"type": "group", "filters": [leaf, leaf]}
    assert refused({"type": "group", "filters": [leaf, group]}) == {"filters.0.filters.1"}
    assert refused(*[group] * 11) == {"filters"}
    assert translated(*[group] * 10).filter


def test_all_reasons_are_reported_at_once() -> None:
    assert refused(one("", value="x"), one("a", "x", 1)) == {
        "filters.0.fieldName",
        "filters.1.comparison",
    }
