"""A filter is checked before any subscription depends on it."""

from typing import Any

import pytest

from tests.support import factories
from tests.unit.delivery.api.client import Caller, fields_of, refused

FILTER = "$$->'Body'->'project'->>'id' = 'proj1' AND $$->'Header'->>'Priority' = 'high'"


def check(manager: Caller, **fields: Any) -> dict[str, Any]:
    answer = manager.post("filters/check", {"filter": FILTER} | fields)
    assert answer.status == 200, answer
    body: dict[str, Any] = answer.body
    return body


def test_a_valid_filter_alone_has_no_result(manager: Caller) -> None:
    assert check(manager) == {
        "valid": True,
        "error": None,
        "line": None,
        "column": None,
        "result": None,
    }


@pytest.mark.parametrize(("priority", "result"), [("high", True), ("low", False)])
def test_a_filter_is_checked_against_a_header_and_body(
    manager: Caller, priority: str, result: bool
) -> None:
    header = {"PRIORITY": priority}
    assert check(manager, header=header, body={"project": {"id": "proj1"}})["result"] is result


def test_a_filter_is_checked_against_the_sample_of_an_event_type(manager: Caller) -> None:
    factories.event_type("A", sample={"project": {"id": "proj1"}})
    assert check(manager, event_type="A")["result"] is False
    assert check(manager, event_type="A", header={"priority": "high"})["result"] is True


def test_a_wrong_filter_has_line_and_column(manager: Caller) -> None:
    answer = check(manager, filter="$$->'Body'\n  == 'x'", body={})
    assert answer["valid"] is False
    assert answer["line"] == 2
    assert answer["column"] >= 3
    assert "=" in answer["error"]
    assert answer["result"] is None


@pytest.mark.parametrize("filter_text", ["", " ", "(" * 100, "x" * 20_000, "$$", "\ud7ff", "1 = 1"])
def test_no_filter_breaks_it(manager: Caller, filter_text: str) -> None:
    assert check(manager, filter=filter_text)["valid"] is False


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "filter"),
        ({"filter": 1}, "filter"),
        ({"filter": None}, "filter"),
        ({"filter": ["x"]}, "filter"),
        ({"filter": FILTER, "event_type": "None"}, "event_type"),
        ({"filter": FILTER, "event_type": {}}, "event_type"),
        ({"filter": FILTER, "header": []}, "header"),
        ({"filter": FILTER, "header": {"a": 1}}, "header.a"),
        ({"filter": FILTER, "colour": 1}, "colour"),
    ],
)
def test_a_wrong_question_is_refused(manager: Caller, body: Any, field: str) -> None:
    assert fields_of(refused(manager.post("filters/check", body), 400)) == {field}
