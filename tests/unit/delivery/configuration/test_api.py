"""The configuration by REST: read, planned and applied, with digests."""

from typing import Any

import pytest

from delivery.configuration.document.export import export_configuration
from delivery.configuration.effect import MOST
from subscriptions.models import ConfigurationChange, Publisher, Scope, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller, caller, refused
from tests.unit.delivery.configuration.document.documents import (
    SECRET_VALUES,
    document,
    remove_everything,
    some_of_everything,
)

pytestmark = pytest.mark.django_db

GITHUB = document(publishers=[{"name": "github", "description": "hooks"}])


@pytest.fixture
def manager() -> Caller:
    return caller()


def planned(manager: Caller, content: Any = GITHUB, **given: Any) -> Any:
    answer = manager.post("configuration/plan", {"document": content, **given})
    assert answer.status == 200, answer
    return answer.body


def applied(manager: Caller, digest: str, content: Any = GITHUB, **given: Any) -> ApiAnswer:
    return manager.post("configuration/apply", {"document": content, "digest": digest, **given})


def test_the_document_is_that_of_the_command(manager: Caller) -> None:
    some_of_everything()
    answer = manager.get("configuration")
    assert answer.body == export_configuration()
    assert not any(value.encode() in answer.content for value in SECRET_VALUES)
    assert list(manager.get("configuration?only=policies,publishers").body) == [
        "format",
        "policies",
        "publishers",
    ]
    refused(manager.get("configuration?only=keys"), 400)


def test_the_document_is_not_sent_again_while_it_is_the_same(manager: Caller) -> None:
    some_of_everything()
    tag = manager.get("configuration").headers["ETag"]
    again = manager.ask("GET", "configuration", headers={"if-none-match": tag})
    assert (again.status, again.content) == (304, b"")
    Publisher.objects.create(name="new")
    assert manager.ask("GET", "configuration", headers={"if-none-match": tag}).status == 200


def test_a_plan_warns_of_event_types_that_differ_in_case(manager: Caller) -> None:
    factories.event_type("jenkins.build")
    content = document(event_types=[{"name": "Jenkins.Build"}])
    plan = planned(manager, content)
    (warning,) = plan["warnings"]
    assert warning.startswith("the event types Jenkins.Build, jenkins.build differ only in case")
    assert applied(manager, plan["digest"], content).body["warnings"] == []


def test_a_plan_changes_nothing_and_an_apply_does_it(manager: Caller) -> None:
    plan = planned(manager)
    assert plan["changes"] == [
        {
            "verb": "create",
            "object": "publisher github",
            "fields": [{"name": "description", "before": None, "after": "hooks"}],
        }
    ]
    assert not Publisher.objects.exists()
    assert applied(manager, plan["digest"]).body["changes"] == plan["changes"]
    assert Publisher.objects.get().description == "hooks"
    assert ConfigurationChange.objects.get().actor.startswith("manage key")
    assert (planned(manager)["changes"], planned(manager)["unchanged"]) == ([], 1)


def test_the_digest_may_come_as_if_match(manager: Caller) -> None:
    answer = manager.post("configuration/plan", {"document": GITHUB})
    body = (
        answer.content
        and b'{"document": {"format": 1, '
        b'"publishers": [{"name": "github", "description": "hooks"}]}}'
    )
    done = manager.ask(
        "POST", "configuration/apply", body, headers={"if-match": answer.headers["ETag"]}
    )
    assert done.status == 200
    assert (
        refused(manager.ask("POST", "configuration/apply", body), 400)["errors"][0]["field"]
        == "digest"
    )


def test_another_plan_is_not_applied(manager: Caller) -> None:
    digest = planned(manager)["digest"]
    other = document(publishers=[{"name": "github", "description": "other"}])
    refused(applied(manager, digest, other), 409, "plan-changed")
    assert not Publisher.objects.exists()


def test_all_faults_are_reported_with_object_and_field(manager: Caller) -> None:
    content = document(publishers=[{"name": "b d"}, {"name": "c", "event_types": ["Nothing"]}])
    problem = refused(manager.post("configuration/plan", {"document": content}), 400, "invalid")
    assert [(error["object"], error["field"]) for error in problem["errors"]] == [
        ("publisher b d", "name"),
        ("publisher c", "event_types"),
    ]


def test_secrets_come_with_the_request_and_not_from_the_server(
    manager: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_of_everything()
    content = manager.get("configuration").body
    remove_everything()
    monkeypatch.setenv("ABC_ALL_TOKEN", "of the server")
    problem = refused(manager.post("configuration/plan", {"document": content}), 400)
    assert {error["field"] for error in problem["errors"]} == {
        "auth.token",
        "auth.password",
        "headers.X-Key",
        "headers.a",
    }
    secrets = {
        "env:ABC_ALL_TOKEN": "given",
        "env:ABC_PROJECT_1008_PASSWORD": "p",
        "env:ABC_PROJECT_1008_HEADER_X_KEY": "x",
        "env:ABC_PROJECT_1008_HEADER_A": "y",
    }
    digest = planned(manager, content, secrets=secrets)["digest"]
    assert applied(manager, digest, content, secrets=secrets).status == 200
    assert Subscription.objects.get(name="all").auth["token"] == "given"


def test_drift_lists_what_was_changed_created_and_deleted_by_hand(manager: Caller) -> None:
    some_of_everything()
    content = manager.get("configuration").body
    answer = manager.post("configuration/drift", {"document": content})
    assert (answer.status, answer.body["changes"]) == (200, [])
    assert answer.body["unchanged"] > 0
    assert "subscription abc/all, auth.token: env:ABC_ALL_TOKEN" in answer.body["kept"]
    Publisher.objects.filter(name="anybody").update(description="changed by hand")
    Publisher.objects.filter(name="teamforge").delete()
    Publisher.objects.create(name="by-hand")
    answer = manager.post("configuration/drift", {"document": content})
    change, creation, deletion = answer.body["changes"]
    assert change == {
        "verb": "change",
        "object": "publisher anybody",
        "fields": [{"name": "description", "before": "changed by hand", "after": ""}],
    }
    assert (creation["verb"], creation["object"]) == ("create", "publisher teamforge")
    assert deletion == {"verb": "delete", "object": "publisher by-hand", "fields": []}
    assert Publisher.objects.filter(name="by-hand").exists()


def test_drift_has_deletions_that_a_plan_refuses(manager: Caller) -> None:
    factories.subscription(subscriber=factories.subscriber("abc"))
    given = {"document": document(subscribers=[])}
    refused(manager.post("configuration/plan", given | {"prune": True}), 400)
    answer = manager.post("configuration/drift", given)
    assert (answer.status, answer.body) == (
        200,
        {
            "unchanged": 0,
            "changes": [{"verb": "delete", "object": "subscriber abc", "fields": []}],
            "kept": [],
        },
    )


def test_drift_compares_secrets_that_are_given_and_masks_them(manager: Caller) -> None:
    some_of_everything()
    content = manager.get("configuration?only=subscriptions").body
    given = {"document": content, "secrets": {"env:ABC_ALL_TOKEN": "another-token"}}
    answer = manager.post("configuration/drift", given)
    (change,) = answer.body["changes"]
    assert (change["object"], change["fields"][0]["name"]) == ("subscription abc/all", "auth")
    assert b"another-token" not in answer.content
    given["secrets"] = {"env:ABC_ALL_TOKEN": "bearer-token"}
    assert manager.post("configuration/drift", given).body["changes"] == []


def test_a_wrong_document_has_no_drift_but_faults(manager: Caller) -> None:
    content = document(publishers=[{"name": "b d"}])
    problem = refused(manager.post("configuration/drift", {"document": content}), 400, "invalid")
    assert [(error["object"], error["field"]) for error in problem["errors"]] == [
        ("publisher b d", "name")
    ]
    refused(manager.post("configuration/drift", {"document": GITHUB, "prune": True}), 400)


def test_what_is_lacking_is_pruned_when_asked(manager: Caller) -> None:
    Publisher.objects.create(name="old")
    content = document(publishers=[])
    assert planned(manager, content)["changes"] == []
    digest = planned(manager, content, prune=True)["digest"]
    assert applied(manager, digest, content, prune=True).status == 200
    assert not Publisher.objects.exists()


def test_a_plan_counts_the_subscriptions_that_it_has_not_tried(manager: Caller) -> None:
    factories.message(event_type=factories.event_type("Orders"))
    factories.subscriber("abc")
    new = [
        {
            "subscriber": "abc",
            "name": f"s{number}",
            "event_type": "Orders",
            "endpoint": "https://abc.example/",
        }
        for number in range(MOST + 3)
    ]
    all_tried = planned(manager, document(subscriptions=new[:MOST]))
    assert (len(all_tried["effects"]), all_tried["not_tried"]) == (MOST, 0)
    content = document(subscriptions=new)
    plan = planned(manager, content)
    assert (len(plan["effects"]), plan["not_tried"]) == (MOST, 3)
    assert {effect["more"] for effect in plan["effects"]} == {1}
    done = applied(manager, plan["digest"], content).body
    assert (done["effects"], done["not_tried"]) == ([], 0)


@pytest.mark.parametrize("scope", [Scope.READ])
def test_who_may_not_manage_is_refused(scope: Scope) -> None:
    reading = caller(scope)
    refused(reading.get("configuration"), 403, "wrong-scope")
    for call in ("plan", "drift", "apply"):
        refused(reading.post(f"configuration/{call}", {"document": GITHUB}), 403, "wrong-scope")
    refused(reading.get("configuration/effects/1"), 403, "wrong-scope")


def test_a_long_document_is_taken(manager: Caller) -> None:
    content = document(
        publishers=[{"name": f"p{number}", "description": "x" * 9_000} for number in range(200)]
    )
    assert len(planned(manager, content)["changes"]) == 200
