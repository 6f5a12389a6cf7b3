"""Publishers, and keys that are shown once and can be revoked."""

import pytest
from pytest_django import DjangoAssertNumQueries

from subscriptions.models import ApiKey, ConfigurationChange, Publisher, Scope
from subscriptions.models.api_key import hash_of
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, created, fields_of, refused


def test_a_publisher_may_publish_everything_unless_event_types_are_named(manager: Caller) -> None:
    factories.event_type("A")
    factories.event_type("B")
    assert created(manager.post("publishers", {"name": "all"}))["event_types"] is None
    assert created(manager.post("publishers", {"name": "some", "event_types": ["B", "A"]}))[
        "event_types"
    ] == ["A", "B"]
    assert (
        created(manager.post("publishers", {"name": "none", "event_types": []}))["event_types"]
        == []
    )
    assert manager.patch("publishers/some", {"event_types": ["B"]}).body["event_types"] == ["B"]
    assert manager.patch("publishers/some", {"description": "d"}).body["event_types"] == ["B"]
    assert manager.patch("publishers/some", {"event_types": None}).body["event_types"] is None
    log = (
        ConfigurationChange.objects.filter(object_name="some", action="changed")
        .order_by("id")
        .first()
    )
    assert log is not None
    assert (log.before, log.after) == ({"event_types": ["A", "B"]}, {"event_types": ["B"]})


def test_an_event_type_that_is_not_there_is_refused(manager: Caller) -> None:
    problem = refused(manager.post("publishers", {"name": "some", "event_types": ["None"]}), 400)
    assert fields_of(problem) == {"event_types"}
    assert not Publisher.objects.exists()


@pytest.mark.parametrize(("owners", "scope"), [("publishers", "publish"), ("subscribers", "fetch")])
def test_a_key_is_shown_once_and_stored_as_a_hash(manager: Caller, owners: str, scope: str) -> None:
    manager.post(owners, {"name": "shop"})
    made = created(manager.post(f"{owners}/shop/keys", {"name": "laptop"}))
    assert made["scope"] == scope
    assert made["key"].startswith("inturn_")
    assert ApiKey.objects.get(pk=made["id"]).hash == hash_of(made["key"])
    listed = manager.get(f"{owners}/shop/keys")
    assert made["key"].encode() not in listed.content
    assert listed.body["results"][0]["hint"] == made["key"][-4:]
    assert not ConfigurationChange.objects.filter(after__icontains=made["key"]).exists()


def test_a_revoked_key_stays_listed_and_is_refused(manager: Caller) -> None:
    manager.post("publishers", {"name": "shop"})
    made = created(manager.post("publishers/shop/keys"))
    assert manager.delete(f"publishers/shop/keys/{made['id']}").status == 204
    assert manager.delete(f"publishers/shop/keys/{made['id']}").status == 204
    assert manager.get("publishers/shop/keys").body["results"][0]["revoked_at"] is not None
    refused(Caller(made["key"]).get("messages/msg_1"), 401)


def test_a_key_of_another_publisher_is_not_there(manager: Caller) -> None:
    mine, _ = factories.api_key(Scope.PUBLISH, publisher=factories.publisher("mine"))
    factories.publisher("other")
    refused(manager.delete(f"publishers/other/keys/{mine.pk}"), 404)
    refused(manager.get(f"publishers/other/keys/{mine.pk}"), 404)
    refused(manager.get(f"keys/{mine.pk}"), 404)
    assert ApiKey.objects.get(pk=mine.pk).revoked_at is None


def test_a_key_that_would_have_ended_already_is_refused(manager: Caller) -> None:
    manager.post("publishers", {"name": "shop"})
    problem = refused(
        manager.post("publishers/shop/keys", {"expires_at": "2020-01-01T00:00:00Z"}), 400
    )
    assert fields_of(problem) == {"expires_at"}


def test_only_an_unused_publisher_can_be_deleted_and_its_keys_with_it(
    manager: Caller,
) -> None:
    busy = factories.message().publisher
    assert busy is not None
    refused(manager.delete(f"publishers/{busy.name}"), 409, "in-use")
    idle, _ = factories.api_key(Scope.PUBLISH)
    assert idle.publisher is not None
    assert manager.delete(f"publishers/{idle.publisher.name}").status == 204
    assert not ApiKey.objects.filter(pk=idle.pk).exists()


def test_a_key_to_read_with_is_made_by_the_api(manager: Caller) -> None:
    made = created(manager.post("keys", {"scope": "read", "name": "auditor"}))
    reader = Caller(made["key"])
    assert reader.get("messages").status == 200
    refused(reader.get("event-types"), 403, "wrong-scope")
    refused(manager.post("keys", {"scope": "publish"}), 400)


@pytest.mark.parametrize("limit", ["publisher", "subscriber"])
def test_an_empty_limit_of_a_key_is_refused_rather_than_ignored(
    manager: Caller, limit: str
) -> None:
    problem = refused(manager.post("keys", {"scope": "read", limit: ""}), 400)
    assert fields_of(problem) == {limit}
    assert not ApiKey.objects.filter(scope=Scope.READ).exists()


def test_a_key_may_change_things_however_long_its_name(manager: Caller) -> None:
    made = created(manager.post("keys", {"scope": "manage", "name": "n" * 200}))
    created(Caller(made["key"]).post("event-types", {"name": "A"}))
    change = ConfigurationChange.objects.get(object_name="A")
    assert change.actor.endswith(f" …{made['hint']}")


def test_the_pages_of_publishers_cost_the_same_however_many_there_are(
    manager: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        factories.publisher(f"p{number}", all_event_types=False).event_types.add(
            factories.event_type()
        )
    manager.get("publishers")
    # Key, publishers, event types.
    with django_assert_num_queries(3):
        assert len(manager.get("publishers").body["results"]) == 5


def test_a_publish_key_cannot_list_publishers(db: None) -> None:
    refused(caller(Scope.PUBLISH).get("publishers"), 403)
