"""Event types are configured, and only with values that can work."""

import pytest

from subscriptions.models import ConfigurationChange, EventType
from tests.support import factories
from tests.unit.delivery.api.client import Caller, created, fields_of, refused


def test_an_event_type_is_made_read_changed_and_deleted(manager: Caller) -> None:
    made = created(
        manager.post(
            "event-types",
            {
                "name": "TeamForge.Artifact.Create",
                "description": "An artifact was made.",
                "sample": {"original": {"project": {"id": "proj1008"}}},
                "json_schema": {"type": "object"},
            },
        )
    )
    assert made["kind"] == "TOPIC"
    assert made["durability"] == "GUARANTEED"
    assert made["ttl_seconds"] is None
    assert made["created_at"].endswith("Z")

    changed = manager.patch("event-types/TeamForge.Artifact.Create", {"description": "New."})
    assert changed.body["description"] == "New."
    assert changed.body["sample"] == made["sample"]

    assert manager.delete("event-types/TeamForge.Artifact.Create").status == 204
    refused(manager.get("event-types/TeamForge.Artifact.Create"), 404, "not-found")


def test_a_refused_choice_names_the_possible_ones(manager: Caller) -> None:
    detail = refused(manager.post("event-types", {"name": "A", "kind": "TOPICS"}), 400)["detail"]
    assert detail == 'kind: "TOPICS" is not one of TOPIC, QUEUE, SYNC.'


def test_every_change_is_in_the_configuration_log_with_the_key_that_made_it(db: None) -> None:
    from tests.unit.delivery.api.client import caller

    manager = caller(name="terraform")
    manager.post("event-types", {"name": "A"})
    manager.patch("event-types/A", {"description": "new"})
    manager.delete("event-types/A")
    deleted, changed, made = ConfigurationChange.objects.all()
    assert [made.action, changed.action, deleted.action] == ["created", "changed", "deleted"]
    assert changed.before == {"description": ""}
    assert changed.after == {"description": "new"}
    assert made.actor.startswith("key terraform …")


def test_a_name_that_differs_only_in_case_is_allowed_with_a_warning(manager: Caller) -> None:
    factories.event_type("TeamForge.Artifact.Create")
    made = manager.post("event-types", {"name": "teamforge.artifact.create"})
    assert made.status == 201
    assert (
        "There is also TeamForge.Artifact.Create, which differs from"
        in made.headers["Inturn-Warning"]
    )
    changed = manager.patch("event-types/TeamForge.Artifact.Create", {"description": "x"})
    assert "There is also teamforge.artifact.create" in changed.headers["Inturn-Warning"]
    assert "Inturn-Warning" not in manager.post("event-types", {"name": "Another"}).headers


def test_a_name_in_use_is_409_and_changes_nothing(manager: Caller) -> None:
    factories.event_type("A", description="the first")
    problem = refused(
        manager.post("event-types", {"name": "A", "description": "x"}), 409, "name-in-use"
    )
    assert "A" in problem["detail"]
    factories.event_type("B")
    refused(manager.patch("event-types/B", {"name": "A"}), 409, "name-in-use")
    assert EventType.objects.get(name="A").description == "the first"
    assert ConfigurationChange.objects.count() == 0


def test_an_event_type_in_use_cannot_be_deleted(manager: Caller) -> None:
    used = factories.subscription().event_type
    problem = refused(manager.delete(f"event-types/{used.name}"), 409, "in-use")
    assert "subscriptions" in problem["detail"]
    published = factories.message().event_type
    assert "messages" in refused(manager.delete(f"event-types/{published.name}"), 409)["detail"]


def test_the_kind_cannot_be_changed(manager: Caller) -> None:
    manager.post("event-types", {"name": "Jobs", "kind": "QUEUE"})
    problem = refused(manager.patch("event-types/Jobs", {"kind": "TOPIC"}), 400)
    assert fields_of(problem) == {"kind"}
    assert manager.patch("event-types/Jobs", {"kind": "QUEUE", "description": "jobs"}).status == 200
    assert EventType.objects.get(name="Jobs").kind == "QUEUE"


@pytest.mark.parametrize("seconds", [0, -1, 2**31, 1.5, "soon"])
def test_a_ttl_is_some_seconds(manager: Caller, seconds: object) -> None:
    problem = refused(manager.post("event-types", {"name": "A", "ttl_seconds": seconds}), 400)
    assert fields_of(problem) == {"ttl_seconds"}


def test_a_schema_may_refer_to_itself_where_messages_end(manager: Caller) -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    assert (
        created(manager.post("event-types", {"name": "A", "json_schema": tree}))["json_schema"]
        == tree
    )


def test_a_sample_keeps_large_numbers_and_any_script(manager: Caller) -> None:
    made = manager.ask(
        "POST",
        "event-types",
        '{"name": "A", "sample": {"n": 123456789012345678901234567890, "t": "žluť"}}'.encode(),
    )
    assert b"123456789012345678901234567890" in made.content
    assert "žluť".encode() in manager.get("event-types/A").content


@pytest.mark.parametrize("value", [r'"\u0000"', r'{"\u0000": 1}', "1e400"])
def test_a_sample_that_the_database_cannot_hold_is_refused(manager: Caller, value: str) -> None:
    body = f'{{"name": "A", "sample": {value}}}'.encode()
    refused(manager.ask("POST", "event-types", body), 400)
    assert not EventType.objects.filter(name="A").exists()
