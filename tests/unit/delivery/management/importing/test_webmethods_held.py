"""Triggers of which a condition is missing are HELD; triggers of a server are one application."""

import json
from typing import Any

import pytest

from delivery.management.importing.webmethods import import_webmethods
from tests.unit.delivery.management.importing.test_webmethods import SERVER, condition, imported


def filtered(name: str, text: str, document_type: str = "orders:Created") -> dict[str, Any]:
    pairs = [{"messageType": document_type, "filter": text}]
    return condition(name, messageTypeFilterPairs=pairs)


def test_a_subscriber_without_one_of_its_conditions_is_held() -> None:
    found = imported(filtered("vip", "%name% == /V.*/"), filtered("rest", ""))
    (held,) = found.document()["subscribers"]
    assert held["status"] == "HELD"
    assert found.impossible[-1] == (
        "trigger orders.triggers.handle: its condition vip is missing, and the later condition "
        "rest would get its documents orders:Created. It is HELD: write the condition anew at its "
        "position, then make the subscriber ACTIVE"
    )


def test_a_held_subscriber_is_told_when_no_later_condition_is_for_the_documents() -> None:
    found = imported(
        filtered("first", ""), filtered("odd", "%a% ~ 1"), filtered("other", "", "orders:Changed")
    )
    assert found.document()["subscribers"][0]["status"] == "HELD"
    assert "no later condition is for its documents orders:Created" in found.impossible[-1]


def test_a_join_or_an_endpoint_that_cannot_be_taken_over_holds_the_subscriber_too() -> None:
    joined = imported(condition("odd", "a:A", "a:B", joinType="odd"), condition("other", "a:B"))
    assert joined.document()["subscribers"][0]["status"] == "HELD"
    assert "the later condition other would get its documents a:B" in joined.impossible[-1]
    given = [{"triggerName": "t", "conditions": [condition("a"), condition("b", endpoint="x://y")]}]
    found = import_webmethods(json.dumps(given))
    assert found.document()["subscribers"][0]["status"] == "HELD"


def test_an_inactive_subscriber_without_a_condition_stays_inactive() -> None:
    found = imported(filtered("vip", "%name% == /V.*/"), executeEnabled="false")
    assert found.document()["subscribers"][0]["status"] == "INACTIVE"
    assert "It is INACTIVE" in found.impossible[-1]


@pytest.mark.parametrize(
    ("source", "application"),
    [
        ({"server": "https://IS.example:5543"}, "is.example"),
        ({"server": SERVER, "client": "orders client"}, "orders-client"),
        ({}, None),
    ],
)
def test_the_triggers_of_a_server_are_one_application(source: Any, application: str | None) -> None:
    triggers = [
        {"triggerName": name, "conditions": [condition(endpoint="https://8.8.8.8/a")]}
        for name in ("a", "b")
    ]
    found = import_webmethods(json.dumps(source | {"triggers": triggers}))
    assert [subscriber.get("application") for subscriber in found.document()["subscribers"]] == [
        application
    ] * 2
    assert found.fields.unread() == []
