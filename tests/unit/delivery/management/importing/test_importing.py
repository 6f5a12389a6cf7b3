"""Configurations of other systems, converted into documents that can be applied, and reports."""

import io
import json
import stat
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from delivery.management.importing.event_queue import import_event_queue
from delivery.management.importing.import_result import SourceError
from delivery.management.importing.teamforge import import_teamforge
from subscriptions.models import Subscription
from subscriptions.publish_ids import publisher_of_id
from tests.unit.delivery.configuration.document.documents import apply, plan

TEAMFORGE = """\
EventName,ContentType,EventType,PublisherName,PublisherID,SubscriberName,Status,HttpHeaders,\
WebhookEndpoint,SubsFilter,HeaderFilterString,CustomScript
TeamForge.Artifact.Create,application/json,TOPIC,teamforge,1f0c2a9e-7a17-4f5b-9a3e-6c8f2d1b4a99,\
build server,Active,X-Key: s3cret,https://8.8.8.8/hook,$$->’Body’->>’id’ = ’1’,proj1,
TeamForge.Artifact.Create,application/json,TOPIC,teamforge,1f0c2a9e-7a17-4f5b-9a3e-6c8f2d1b4a99,\
build server,INACTIVE,,PATCH:https://8.8.8.8/two,,,
TeamForge.Artifact.Create,application/json,TOPIC,teamforge,1f0c2a9e-7a17-4f5b-9a3e-6c8f2d1b4a99,\
abc,Active,,https://8.8.8.8/abc,,,$outmessage = $inmessage
TeamForge.Artifact.Create,application/json,TOPIC,teamforge,,crm,Active,,https://8.8.8.8/crm,,,\
"$outmessage = webGet('a', '/b');"
Jenkins.Build,application/json,QUEUE,jenkins,1f0c,abc,Active,,https://8.8.8.8/abc,$$->'Body' is,,
jenkins.build,application/json,QUEUE,teamforge,,,,,,,,
"""
QUEUES = json.dumps(
    [{"queueId": "q-1", "name": "acme", "events": ["User.Made", "User.Gone"]}, {"queueId": "q-2"}]
)


def test_teamforges_rows_become_event_types_and_publishers() -> None:
    document = import_teamforge(TEAMFORGE).document()
    assert [(event_type["name"], event_type["kind"]) for event_type in document["event_types"]] == [
        ("Jenkins.Build", "QUEUE"),
        ("TeamForge.Artifact.Create", "TOPIC"),
        ("jenkins.build", "QUEUE"),
    ]
    assert document["publishers"] == [
        {"name": "jenkins", "event_types": ["Jenkins.Build"]},
        {
            "name": "teamforge",
            "event_types": ["TeamForge.Artifact.Create", "jenkins.build"],
            "publish_id": {"from": "env:TEAMFORGE_PUBLISH_ID"},
        },
    ]


def test_an_event_format_becomes_the_sample() -> None:
    rows = [
        {"EventName": "Jenkins.Build", "EventFormat": '{"build": 7}'},
        {"EventName": "Jenkins.Test", "EventFormat": "build, result"},
    ]
    imported = import_teamforge(json.dumps(rows))
    samples = [event_type.get("sample") for event_type in imported.document()["event_types"]]
    assert samples == [{"build": 7}, None]
    assert imported.impossible == [
        "event type Jenkins.Test: its EventFormat is not JSON; give it a sample in the console"
    ]


def test_what_a_later_row_says_otherwise_is_reported() -> None:
    first = {"EventName": "Build", "PublisherName": "ci", "PublisherID": "a" * 20}
    later = first | {"EventType": "QUEUE", "ContentType": "text/xml", "PublisherID": "b" * 20}
    imported = import_teamforge(json.dumps([first, first, later, later]))
    assert imported.impossible == [
        "event type Build: it is TOPIC in an earlier row; EventType QUEUE is not taken over",
        "event type Build: it is application/json in an earlier row; "
        "ContentType text/xml is not taken over",
        "publisher ci: its PublisherID for Build is not that of an earlier row; "
        "the addresses with it change",
    ]


def test_a_status_that_teamforge_does_not_have_sends_nothing() -> None:
    row = {"EventName": "Build", "SubscriberName": "crm", "WebhookEndpoint": "https://8.8.8.8/"}
    imported = import_teamforge(json.dumps([row | {"Status": "Disabled"}]))
    assert imported.document()["subscriptions"][0]["status"] == "INACTIVE"
    assert imported.differently == [
        "subscription crm/Build: its Status Disabled is neither Active nor Inactive; it is INACTIVE"
    ]


def test_teamforges_rows_become_subscriptions() -> None:
    document = import_teamforge(TEAMFORGE).document()
    create = "TeamForge.Artifact.Create"
    unfiltered = {"event_type": create, "header_filter_string": "", "filter": "", "headers": {}}
    assert document["subscriptions"] == [
        {
            "subscriber": "abc",
            "name": create,
            **unfiltered,
            "endpoint": "https://8.8.8.8/abc",
            "status": "ACTIVE",
            "script": "$outmessage = $inmessage",
        },
        {
            "subscriber": "build-server",
            "name": create,
            "event_type": create,
            "header_filter_string": "proj1",
            "filter": "$$->'Body'->>'id' = '1'",
            "endpoint": "https://8.8.8.8/hook",
            "headers": {
                "X-Key": {"from": "env:BUILD_SERVER_TEAMFORGE_ARTIFACT_CREATE_HEADER_X_KEY"}
            },
            "status": "ACTIVE",
        },
        {
            "subscriber": "build-server",
            "name": f"{create}-2",
            **unfiltered,
            "endpoint": "PATCH:https://8.8.8.8/two",
            "status": "INACTIVE",
        },
        {
            "subscriber": "crm",
            "name": create,
            **unfiltered,
            "endpoint": "https://8.8.8.8/crm",
            "status": "INACTIVE",
        },
    ]


def test_the_report_says_what_differs_and_what_is_impossible() -> None:
    imported = import_teamforge(TEAMFORGE)
    assert "subscriber 'build server' is build-server" in "\n".join(imported.differently)
    assert (
        "event types Jenkins.Build and jenkins.build differ in case only; they are two"
        in imported.differently
    )
    assert [line.partition(":")[0] for line in imported.impossible] == [
        "subscription crm/TeamForge.Artifact.Create",
        "publisher jenkins",
        "subscription abc/Jenkins.Build",
    ]
    assert "its script uses webGet" in imported.impossible[0]
    assert "its PublisherID cannot be kept" in imported.impossible[1]
    assert "s3cret" not in imported.report()
    assert "1f0c2a9e" not in imported.report() + json.dumps(imported.document())


@pytest.mark.django_db
def test_what_is_imported_can_be_applied() -> None:
    imported = import_teamforge(TEAMFORGE)
    secrets = {f"env:{name}": value for name, value in imported.secrets.items()}
    apply(imported.document(), secrets=secrets)
    assert plan(imported.document(), secrets=secrets).changes == []
    assert Subscription.objects.get(header_filter_string="proj1").headers == {"X-Key": "s3cret"}
    assert Subscription.objects.get(subscriber__name="abc").script_version == 1
    owner = publisher_of_id("1f0c2a9e-7a17-4f5b-9a3e-6c8f2d1b4a99", now=timezone.now())
    assert owner is not None
    assert owner.name == "teamforge"


@pytest.mark.parametrize(
    ("kind", "endpoint", "script", "reason"),
    [
        ("TOPIC", "https://8.8.8.8/", "$outmessage =", "its script is refused (line 2"),
        (
            "TOPIC",
            "https://8.8.8.8/",
            "$include$fields; $outmessage = 1;",
            "its script has $include$ beside other code",
        ),
        ("TOPIC", "webr://", "$outmessage = 1;", "webr:// is for SYNC"),
        ("SYNC", "webr://", "", "With the endpoint webr:// a script makes the answer"),
        ("SYNC", "https://8.8.8.8/", "$outmessage = 1;", "The endpoint answers"),
        ("QUEUE", "https://8.8.8.8/", "$outmessage = 1;", "QUEUE"),
    ],
)
def test_a_script_that_cannot_be_taken_over_is_reported(
    kind: str, endpoint: str, script: str, reason: str
) -> None:
    row = {"EventName": "A", "EventType": kind, "SubscriberName": "s", "WebhookEndpoint": endpoint}
    imported = import_teamforge(json.dumps([row | {"CustomScript": script}]))
    (line,) = imported.impossible
    assert reason in line
    kept = imported.document().get("subscriptions", [])
    assert [subscription["status"] for subscription in kept] == (
        [] if endpoint == "webr://" else ["INACTIVE"]
    )
    assert not any("script" in subscription for subscription in kept)


def test_an_included_script_has_to_be_given_before_the_plan() -> None:
    row = {"EventName": "A", "SubscriberName": "s", "WebhookEndpoint": "https://8.8.8.8/"}
    script = "$include$fields\n$include$fields\n$outmessage = fields($inmessage);"
    imported = import_teamforge(json.dumps([row | {"CustomScript": script}]))
    (entry,) = imported.document()["subscriptions"]
    assert (entry["script"], entry["status"], imported.impossible) == (script, "ACTIVE", [])
    (line,) = imported.differently
    assert "its script includes fields, which is not in the source" in line


def test_a_response_script_answers_sync_messages() -> None:
    row = {
        "EventName": "A",
        "EventType": "SYNC",
        "SubscriberName": "s",
        "WebhookEndpoint": "webr://",
    }
    imported = import_teamforge(json.dumps([row | {"CustomScript": "$statuscode = 400;"}]))
    (entry,) = imported.document()["subscriptions"]
    assert (entry["endpoint"], entry["script"], imported.impossible) == (
        "webr://",
        "$statuscode = 400;",
        [],
    )


@pytest.mark.django_db
def test_queues_become_mailboxes() -> None:
    imported = import_event_queue(QUEUES)
    document = imported.document()
    assert document["subscribers"] == [
        {"name": "acme", "queue_id": "q-1"},
        {"name": "q-2", "queue_id": "q-2"},
    ]
    pull = {"subscriber": "acme", "mode": "PULL"}
    assert document["subscriptions"] == [
        {**pull, "name": "User.Gone", "event_type": "User.Gone"},
        {**pull, "name": "User.Made", "event_type": "User.Made"},
        {"subscriber": "q-2", "name": "q-2", "event_type": "q-2", "mode": "PULL"},
    ]
    assert imported.differently == [
        "queue q-2: the source names no events, so its event type is q-2"
    ]
    apply(document)
    assert plan(document).changes == []


@pytest.mark.parametrize(
    "text", ["", "[]", "a,b\n1,2", "[1]", "[{]", '[{"EventName": "a", "EventType": "FAN"}]']
)
def test_what_teamforge_does_not_export_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        import_teamforge(text)


@pytest.mark.parametrize(
    "text", ["", "{}", '[{"name": "a"}]', '[{"queueId": 1}]', '[{"queueId": "a", "events": "b"}]']
)
def test_what_is_no_list_of_queues_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        import_event_queue(text)


def test_an_import_can_begin_without_sending(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(TEAMFORGE)
    out = io.StringIO()
    call_command(
        "import", "teamforge", tmp_path / "rows.csv", shadow=True, stdout=out, stderr=io.StringIO()
    )
    statuses = [entry["status"] for entry in json.loads(out.getvalue())["subscriptions"]]
    assert set(statuses) == {"SHADOW", "INACTIVE"}


def test_the_command_writes_document_report_and_secrets(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(TEAMFORGE)
    out, err, secrets = io.StringIO(), io.StringIO(), tmp_path / "secrets"
    call_command(
        "import", "teamforge", tmp_path / "rows.csv", secrets=secrets, stdout=out, stderr=err
    )
    assert json.loads(out.getvalue()) == import_teamforge(TEAMFORGE).document()
    assert "s3cret" not in out.getvalue() + err.getvalue()
    assert secrets.read_text().splitlines() == [
        "CONFIGURATION_SECRET_BUILD_SERVER_TEAMFORGE_ARTIFACT_CREATE_HEADER_X_KEY=s3cret",
        "CONFIGURATION_SECRET_TEAMFORGE_PUBLISH_ID=1f0c2a9e-7a17-4f5b-9a3e-6c8f2d1b4a99",
    ]
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    with pytest.raises(CommandError, match="cannot be written"):
        call_command(
            "import", "teamforge", tmp_path / "rows.csv", secrets=secrets, stdout=out, stderr=err
        )
