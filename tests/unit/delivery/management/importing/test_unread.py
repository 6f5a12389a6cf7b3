"""Importers report each field of a source that they did not read, and the command refuses it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from delivery.management.importing.event_queue import import_event_queue
from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.teamforge import import_teamforge
from delivery.management.importing.webmethods import import_webmethods
from delivery.management.importing.workfront import import_workfront

CSV = """\
EventName,SubscriberName,WebhookEndpoint,SubscriptionFilter,Remark
Build,a,https://8.8.8.8/a,$$->'Body'->>'p' = '1',
Build,b,https://8.8.8.8/b,$$->'Body'->>'p' = '2',
Build,c,https://8.8.8.8/c,,
"""


def unread(found: Imported) -> list[str]:
    return found.fields.unread()


def test_a_column_of_another_name_is_reported_with_its_values_and_the_right_name() -> None:
    assert unread(import_teamforge(CSV)) == [
        "column SubscriptionFilter, 2 values; did you mean SubsFilter?"
    ]


def test_the_report_has_a_part_for_fields_that_were_not_read() -> None:
    report = import_teamforge(CSV).report()
    assert "Not read (1)\n  column SubscriptionFilter, 2 values" in report
    assert (
        "Not read" not in import_teamforge(CSV.replace("SubscriptionFilter", "SubsFilter")).report()
    )


def test_cells_beyond_the_header_row_are_reported() -> None:
    text = "EventName,EventType\nBuild,TOPIC,lost\n"
    assert unread(import_teamforge(text)) == ["column without a name, 1 value"]


def test_a_row_that_is_reported_as_impossible_is_not_reported_twice() -> None:
    rows = [{"EventName": "a", "SubscriberName": "b", "WebhookEndpoint": "orch://x", "Status": "x"}]
    found = import_teamforge(json.dumps(rows))
    assert (len(found.impossible), unread(found)) == (1, [])


def test_columns_in_lower_case_are_named() -> None:
    with pytest.raises(SourceError, match="the source has eventname"):
        import_teamforge(CSV.lower())


def test_keys_of_queues_are_reported() -> None:
    queue = {"queueId": "q", "name": "a", "events": ["E"], "prefix": "x", "filter": {"a": 1}}
    found = import_event_queue(json.dumps([queue, {"queueId": "r", "event": ["E"], "filter": {}}]))
    assert unread(found) == [
        "key event, 1 value; did you mean events?",
        "key filter, 1 value",
        "key prefix, 1 value",
    ]


def test_the_vendors_own_answer_is_read_to_its_end() -> None:
    assert unread(import_workfront(json.dumps(ANSWER))) == []


def test_keys_of_workfronts_answer_are_reported() -> None:
    (listed,) = ANSWER["subscriptions"]
    given = {"subscriptions": [listed | {"filter": [1]}], "next": "…"}
    assert unread(import_workfront(json.dumps(given))) == [
        "key filter, 1 value; did you mean filters?",
        "key of the answer next, 1 value",
    ]


ANSWER: dict[str, Any] = {
    "subscriptions": [
        {
            "id": "750a636c-5628-48f5-ba26-26b7ce537ac2",
            "date_created": "2024-04-11T17:10:10.305981",
            "date_modified": "2024-04-11T17:10:10.305981",
            "version": "v2",
            "dateVersionUpdated": "2025-01-15T04:04:04.407945",
            "customerId": "504f9640000013401be513579fbebffa",
            "objId": None,
            "objCode": "PROJ",
            "url": "http://8.8.8.8/ua5hi2ua",
            "eventType": "UPDATE",
            "authToken": "authTokenWorkfrontRocks1234_",
            "subscription_url": {
                "url": "http://8.8.8.8/ua5hi2ua",
                "date_created": "2024-04-11T15:56:14.169489",
                "successes": 11,
                "failures": 2,
                "disabled_at": None,
                "frozen_at": None,
            },
        }
    ],
    "meta": {"page": 1, "page_count": 1, "limit": 100, "total_count": 1},
}


def webmethods(trigger: dict[str, Any], **properties: Any) -> Imported:
    pairs = [{"messageType": "orders:Created"}]
    given = {
        "triggerName": "t",
        "properties": properties,
        "conditions": [
            {"conditionName": "c", "serviceName": "a:b", "messageTypeFilterPairs": pairs}
        ],
    }
    return import_webmethods(
        json.dumps({"server": "https://8.8.8.8", "triggers": [given | trigger]})
    )


def test_the_names_of_node_ndf_are_read() -> None:
    found = webmethods(
        {},
        concurrent="true",
        docsPrefetchMax=50,
        redeliveryOptions={"max": 3},
        maxExecutionThreads=7,
    )
    (subscriber,) = found.document()["subscribers"]
    (policy,) = found.document()["policies"]
    assert (subscriber["processing"], subscriber["max_in_flight"]) == ("CONCURRENT", 7)
    assert (subscriber["max_queued_to_send"], policy["max_attempts"]) == (50, 4)
    assert unread(found) == []


def test_properties_and_keys_of_triggers_are_reported() -> None:
    found = webmethods(
        {"isConcurrent": "true"}, queueRefilLevel=7, redeliveryOptions={"delay": 5, "max": 1}
    )
    assert unread(found) == [
        "key of a trigger isConcurrent, 1 value",
        "property queueRefilLevel, 1 value; did you mean queueRefillLevel?",
        "property redeliveryOptions.delay, 1 value; did you mean redeliveryOptions.max?",
    ]


def test_properties_without_an_effect_for_this_trigger_are_read() -> None:
    properties = {"maxExecutionThreads": "1", "dupDetection": "false", "dupHistoryTTL": "0"}
    more = {"resolverServiceName": "x", "monitorServiceName": "y", "serialSuspendOnError": "false"}
    found = webmethods({}, **properties, **more)
    assert unread(found) == []


def run_import(path: Path, **options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("import", "teamforge", path, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_the_command_writes_nothing_until_each_field_is_read_or_ignored(tmp_path: Path) -> None:
    path, secrets = tmp_path / "rows.csv", tmp_path / "secrets"
    path.write_text(CSV)
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="--ignore NAME"):
        call_command("import", "teamforge", path, secrets=secrets, stdout=out, stderr=err)
    assert "Not read (1)" in err.getvalue()
    assert (out.getvalue(), secrets.exists()) == ("", False)
    with pytest.raises(CommandError, match="SubscriptionFilter"):
        run_import(path, ignore=["Remark"])
    written, report = run_import(path, ignore=["SubscriptionFilter", "Remark"])
    assert len(json.loads(written)["subscriptions"]) == 3
    assert "Not read" not in report
