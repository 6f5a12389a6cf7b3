"""webMethods triggers, and the subscriptions made of them."""

import json
from typing import Any

import pytest

from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.webmethods import import_webmethods
from subscriptions.models import Policy, Subscriber, Subscription
from tests.unit.delivery.configuration.document.documents import apply, plan

SERVER = "https://8.8.8.8:5543"


def condition(name: str = "new", *types: str, **fields: Any) -> dict[str, Any]:
    pairs = [{"messageType": type_name, "filter": ""} for type_name in types or ("orders:Created",)]
    given = {"conditionName": name, "serviceName": f"orders:{name}", "joinType": "N/A"}
    return given | {"messageTypeFilterPairs": pairs} | fields


def imported(*conditions: Any, **properties: Any) -> Imported:
    trigger = {
        "triggerName": "orders.triggers:handle",
        "properties": properties,
        "conditions": list(conditions or (condition(),)),
    }
    return import_webmethods(json.dumps({"server": SERVER, "triggers": [trigger]}))


def subscriber(**properties: Any) -> dict[str, Any]:
    (found,) = imported(**properties).document()["subscribers"]
    return dict(found)


def policy(**properties: Any) -> Any:
    return imported(**properties).document()["policies"][0]


def test_a_trigger_is_a_subscriber_and_its_conditions_are_subscriptions_in_order() -> None:
    filtered = condition(
        "big", messageTypeFilterPairs=[{"messageType": "orders:Created", "filter": "%total% > 99"}]
    )
    document = imported(
        filtered, condition("other"), condition("several", "a:A", "a:B", joinType="OR")
    ).document()
    assert [event_type["name"] for event_type in document["event_types"]] == [
        "a.A",
        "a.B",
        "orders.Created",
    ]
    assert document["subscribers"] == [
        {
            "name": "orders.triggers.handle",
            "match_mode": "FIRST",
            "processing": "SERIAL",
            "max_queued_to_send": 10,
            "refill_level": 4,
            "status": "ACTIVE",
            "application": "8.8.8.8",
        }
    ]
    reported = {
        subscription["name"]: (
            subscription["position"],
            subscription["event_type"],
            subscription["filter"],
            subscription["endpoint"],
        )
        for subscription in document["subscriptions"]
    }
    assert reported == {
        "big": (1, "orders.Created", "$$->'Body'->>'total' > 99", f"{SERVER}/invoke/orders/big"),
        "other": (2, "orders.Created", "", f"{SERVER}/invoke/orders/other"),
        "several": (3, "a.A", "", f"{SERVER}/invoke/orders/several"),
        "several-a.B": (4, "a.B", "", f"{SERVER}/invoke/orders/several"),
    }


def test_the_names_of_the_trigger_report_are_read_too() -> None:
    trigger = {
        "name": "t",
        "conditions": [
            {
                "name": "c",
                "service": "a:b",
                "documentTypeFilterPairs": [{"documentType": "d:E", "filterSource": "%x% = 1"}],
            }
        ],
    }
    (found,) = import_webmethods(json.dumps({"server": SERVER, "triggers": [trigger]})).document()[
        "subscriptions"
    ]
    assert (found["name"], found["event_type"], found["filter"]) == (
        "c",
        "d.E",
        "$$->'Body'->>'x' = 1",
    )


@pytest.mark.parametrize(
    ("fields", "mode", "seconds"),
    [
        ({"joinType": "AND"}, "ALL", 86_400),
        ({"joinType": "All", "joinTimeOut": "90000"}, "ALL", 90),
        ({"joinType": "XOR", "joinExpires": "false"}, "ONLY_ONE", 31 * 86_400),
    ],
)
def test_a_join_is_taken_over_and_named(fields: Any, mode: str, seconds: int) -> None:
    found = imported(condition("joined", "a:A", "a:B", **fields), condition("other"))
    *parts, other = found.document()["subscriptions"]
    assert [part["event_type"] for part in parts] == ["a.A", "a.B"]
    for part in parts:
        assert (part["join_mode"], part["join_name"], part["join_seconds"]) == (
            mode,
            "joined",
            seconds,
        )
    assert "join_mode" not in other
    (line,) = (line for line in found.differently if "the join" in line)
    assert "of a:A, a:B" in line
    assert found.impossible == []


def test_a_join_of_an_unknown_kind_or_with_an_impossible_filter_is_impossible_as_a_whole() -> None:
    found = imported(condition("odd", "a:A", "a:B", joinType="odd"), condition("other"))
    assert [subscription["name"] for subscription in found.document()["subscriptions"]] == ["other"]
    assert "the join ODD of a:A, a:B" in found.impossible[0]
    joined = condition("joined", "a:A", "a:B", joinType="AND")
    joined["messageTypeFilterPairs"][1]["filter"] = "%a% matches x"
    found = imported(joined, condition("other"))
    assert [subscription["name"] for subscription in found.document()["subscriptions"]] == ["other"]
    assert "the join AND of a:A, a:B" in found.impossible[0]


def test_a_join_of_one_document_type_is_none() -> None:
    assert imported(condition(joinType="AND")).impossible == []


@pytest.mark.parametrize(
    ("properties", "fields"),
    [
        (
            {"isConcurrent": "true", "maxExecutionThreads": "8"},
            {"processing": "CONCURRENT", "max_in_flight": 8},
        ),
        (
            {"queueCapacity": "50", "queueRefillLevel": "20"},
            {"max_queued_to_send": 50, "refill_level": 20},
        ),
        ({"isConcurrent": "true", "priorityEnabled": "true"}, {"by_priority": True}),
        ({"queueCapacity": 5, "queueRefillLevel": 5}, {"max_queued_to_send": 5, "refill_level": 4}),
        ({"executeEnabled": "false"}, {"status": "INACTIVE"}),
    ],
)
def test_order_threads_and_queue_are_the_subscribers(
    properties: Any, fields: dict[str, Any]
) -> None:
    assert subscriber(**properties).items() >= fields.items()


@pytest.mark.parametrize("state", ["suspended", "suspended-temp"])
def test_a_suspended_trigger_is_held(state: str) -> None:
    trigger = {
        "triggerName": "t",
        "conditions": [condition()],
        "processingStatus": {"state": state},
    }
    document = import_webmethods(json.dumps({"server": SERVER, "triggers": [trigger]})).document()
    assert document["subscribers"][0]["status"] == "HELD"


@pytest.mark.parametrize(
    ("properties", "fields"),
    [
        ({}, {"name": "webmethods-1-attempts-10s", "max_attempts": 1, "when_used_up": "FAIL"}),
        (
            {"maxRetryAttempts": "-1", "retryInterval": "2500"},
            {"max_attempts": None, "retry_seconds": 2.5},
        ),
        (
            {"maxRetryAttempts": "3", "redeliveryAction": "1", "serialSuspendOnError": "true"},
            {"max_attempts": 4, "when_used_up": "SUSPEND", "suspends_on_reject": True},
        ),
    ],
)
def test_retries_are_a_policy(properties: Any, fields: dict[str, Any]) -> None:
    found = policy(**properties)
    assert found.items() >= fields.items()
    (subscription,) = imported(**properties).document()["subscriptions"]
    assert subscription["policy"] == found["name"]


def test_triggers_of_the_built_in_settings_have_the_built_in_policy() -> None:
    document = imported(maxRetryAttempts="4", retryInterval="10000").document()
    assert "policies" not in document
    assert document["subscriptions"][0]["policy"] == "webmethods"


def test_exactly_once_is_found_by_the_idempotency_key() -> None:
    found = imported(
        dupDetection="true", dupHistory="true", dupHistoryTTL="7200000", resolverServiceName="a:b"
    )
    (subscription,) = found.document()["subscriptions"]
    assert (subscription["dedup_mode"], subscription["dedup_window_seconds"]) == ("KEY", 7200)
    assert any("Idempotency-Key" in line for line in found.differently)
    assert any("document resolver a:b" in line for line in found.impossible)


@pytest.mark.parametrize(
    ("properties", "word"),
    [
        ({"priorityEnabled": "true"}, "priorities"),
        (
            {"redeliveryAction": "1", "maxRetryAttempts": 1, "monitorServiceName": "a:m"},
            "monitoring service a:m",
        ),
    ],
)
def test_what_inturn_has_not_is_impossible(properties: Any, word: str) -> None:
    (line,) = imported(**properties).impossible
    assert word in line


def test_a_filter_that_cannot_be_said_is_impossible() -> None:
    pairs = [{"messageType": "a:A", "filter": "%name% == /O.*/"}]
    found = imported(condition("regex", messageTypeFilterPairs=pairs))
    assert "subscriptions" not in found.document()
    assert any("%name% == /O.*/" in line for line in found.impossible)


def test_without_a_server_an_endpoint_is_needed() -> None:
    given = [
        {
            "triggerName": "t",
            "conditions": [condition("a"), condition("b", endpoint="https://8.8.8.8/b")],
        }
    ]
    found = import_webmethods(json.dumps(given))
    assert [subscription["endpoint"] for subscription in found.document()["subscriptions"]] == [
        "https://8.8.8.8/b"
    ]
    assert any(
        "nothing says where its service orders:a is called" in line for line in found.impossible
    )


@pytest.mark.django_db
def test_what_is_imported_can_be_applied() -> None:
    found = imported(
        condition("a"),
        condition("b", "x:X", "x:Y", joinType="OR"),
        isConcurrent="true",
        maxExecutionThreads="3",
        redeliveryAction="1",
        maxRetryAttempts="2",
        dupDetection="true",
    )
    apply(found.document())
    assert plan(found.document()).changes == []
    assert Subscriber.objects.get().match_mode == "FIRST"
    assert set(Subscription.objects.values_list("policy__name", flat=True)) == {
        "webmethods-3-attempts-10s-suspend"
    }
    assert Policy.objects.get(name="webmethods-3-attempts-10s-suspend").in_doubt == "HOLD"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[7]",
        '{"triggers": [{}]}',
        '[{"triggerName": "a", "properties": 7}]',
        '[{"triggerName": "a", "conditions": 7}]',
        '[{"triggerName": "a", "conditions": [{"conditionName": "c"}]}]',
        '[{"triggerName": "a", "properties": {"queueCapacity": "x"}}]',
        '{"server": 7, "triggers": [{"triggerName": "a"}]}',
    ],
)
def test_what_is_no_list_of_triggers_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        import_webmethods(text)
