"""Export, apply into an empty installation, export: the same bytes."""

import pytest

from delivery.configuration.document.document import NAMES
from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.export import export_configuration
from subscriptions.models import (
    ConfigurationChange,
    EventType,
    Publisher,
    SigningSecret,
    Subscriber,
    SubscriberStatus,
    Subscription,
)
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import (
    SECRET_VALUES,
    apply,
    plan,
    remove_everything,
    reported,
    some_of_everything,
)

pytestmark = pytest.mark.django_db

SECRETS = {
    "env:ABC_PROJECT_1008_HEADER_X_KEY": SECRET_VALUES[0],
    "env:ABC_PROJECT_1008_HEADER_A": "b",
    "env:ABC_PROJECT_1008_PASSWORD": SECRET_VALUES[1],
    "env:ABC_ALL_TOKEN": SECRET_VALUES[2],
}


def test_an_export_applied_to_an_empty_installation_exports_the_same_bytes() -> None:
    some_of_everything()
    first = export_configuration()
    remove_everything()
    apply(first, secrets=SECRETS)
    assert document_text(export_configuration()) == document_text(first)


@pytest.mark.parametrize("status", SubscriberStatus.values)
def test_held_and_inactive_subscribers_come_back_as_they_were(status: str) -> None:
    some_of_everything()
    Subscriber.objects.filter(name="abc").update(status=status)
    first = export_configuration()
    remove_everything()
    apply(first, secrets=SECRETS)
    assert document_text(export_configuration()) == document_text(first)
    assert Subscriber.objects.get(name="abc").status == status
    assert Subscription.objects.get(name="all").status == "HELD"
    assert plan(first, secrets=SECRETS, prune=True).changes == []


def test_what_is_applied_has_the_values_of_its_secrets() -> None:
    some_of_everything()
    first = export_configuration()
    remove_everything()
    apply(first, secrets=SECRETS)
    row = Subscription.objects.get(name="project-1008")
    assert row.headers == {"X-Key": SECRET_VALUES[0], "a": "b"}
    assert row.auth == {"type": "basic", "username": "inturn", "password": SECRET_VALUES[1]}
    assert row.filter_identity
    assert Subscription.objects.get(name="all").auth == {
        "type": "bearer",
        "token": SECRET_VALUES[2],
    }


def test_a_plan_after_apply_is_empty() -> None:
    some_of_everything()
    first = export_configuration()
    remove_everything()
    assert len(plan(first, secrets=SECRETS).changes) == 14
    apply(first, secrets=SECRETS)
    assert plan(first, secrets=SECRETS).changes == []
    assert plan(first, secrets=SECRETS, prune=True).changes == []


def test_an_export_changes_nothing_where_it_was_made_and_needs_no_secrets() -> None:
    some_of_everything()
    planned = plan(export_configuration(), prune=True)
    assert planned.changes == []
    assert ("subscription abc/all", "auth.token", "env:ABC_ALL_TOKEN") in planned.kept


def test_no_secret_stands_in_the_document() -> None:
    some_of_everything()
    text = document_text(export_configuration())
    assert [value for value in SECRET_VALUES if value in text] == []
    assert SigningSecret.objects.count() == 3
    assert [secret.secret for secret in SigningSecret.objects.all() if secret.secret in text] == []


def test_a_document_has_no_ids_and_no_times_and_nothing_of_inturns_own() -> None:
    some_of_everything()
    text = document_text(export_configuration())
    assert '"id":' not in text.replace('"id": 1', "")
    assert '_at":' not in text
    assert "Inturn." not in text
    assert '"workfront-2017"' not in text


def test_inturns_own_subscriber_for_callbacks_is_neither_exported_nor_pruned() -> None:
    own = factories.subscription(
        "callbacks",
        subscriber=factories.subscriber("Inturn.Callbacks"),
        event_type=factories.event_type("Inturn.Callback"),
    )
    content = export_configuration()
    assert (content["subscribers"], content["subscriptions"]) == ([], [])
    assert plan(content, prune=True).changes == []
    assert Subscription.objects.filter(pk=own.pk).exists()


def test_everything_is_sorted_by_name() -> None:
    some_of_everything()
    content = export_configuration()
    assert [event_type["name"] for event_type in content["event_types"]] == [
        "Builds",
        "Orders.Check",
        "TeamForge.Artifact.Create",
    ]
    assert [
        f"{subscription['subscriber']}/{subscription['name']}"
        for subscription in content["subscriptions"]
    ] == [
        "abc/all",
        "abc/check",
        "abc/project-1008",
        "warehouse/mailbox",
    ]


def test_only_some_lists_are_exported_when_asked() -> None:
    some_of_everything()
    assert list(export_configuration(only=["publishers"])) == ["format", "publishers"]


def test_two_secrets_never_share_a_reference() -> None:
    some_of_everything()
    for name in ("a.b", "a-b"):
        row = Subscription.objects.get(name="all")
        row.pk, row.name, row.headers = None, name, {"X": name}
        row.save(force_insert=True)
    references = [
        subscription["headers"]["X"]["from"]
        for subscription in export_configuration()["subscriptions"]
        if subscription["name"] in ("a.b", "a-b")
    ]
    assert references == ["env:ABC_A_B_HEADER_X", "env:ABC_A_B_HEADER_X_2"]


def test_each_change_is_recorded() -> None:
    some_of_everything()
    first = export_configuration()
    remove_everything()
    ConfigurationChange.objects.all().delete()
    apply(first, secrets=SECRETS)
    recorded = ConfigurationChange.objects.filter(action="created", actor="tester")
    assert recorded.count() == 14
    assert not any(value in str(list(recorded.values())) for value in SECRET_VALUES)


def test_what_is_made_is_complete() -> None:
    some_of_everything()
    first = export_configuration()
    remove_everything()
    apply(first, secrets=SECRETS)
    assert Subscriber.objects.get(name="abc").lane is not None
    assert [row.secrets.count() for row in Subscription.objects.order_by("name")] == [1, 1, 0, 1]
    assert Publisher.objects.get(name="anybody").all_event_types
    teamforge = Publisher.objects.get(name="teamforge")
    assert not teamforge.all_event_types
    assert set(teamforge.event_types.all()) == set(
        EventType.objects.filter(name__regex="^(Team|Orders)")
    )


def test_what_the_document_lacks_is_deleted_only_when_pruned() -> None:
    some_of_everything()
    content = export_configuration()
    del content["subscriptions"][0]
    content["publishers"] = []
    assert plan(content).changes == []
    assert reported(plan(content, prune=True)) == [
        "delete subscription abc/all",
        "delete publisher anybody",
        "delete publisher teamforge",
    ]
    apply(content, prune=True)
    assert not Publisher.objects.exists()
    assert Subscription.objects.count() == 3


def test_everything_can_be_pruned() -> None:
    some_of_everything()
    apply({"format": 1, **{name: [] for name in NAMES}}, prune=True)
    assert list(export_configuration().values()) == [1, [], [], [], [], [], []]


def test_a_list_that_the_document_lacks_is_not_pruned() -> None:
    some_of_everything()
    assert plan({"format": 1}, prune=True).changes == []
