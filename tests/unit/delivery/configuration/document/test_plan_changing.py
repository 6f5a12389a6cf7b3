"""Documents that change existing rows, field by field, and outdated plans."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.configuration.applying import apply_document, checked_document, plan_document
from delivery.configuration.document.apply import PlanChangedError
from delivery.configuration.document.plan import PlannedField, Verb
from delivery.configuration.document.secrets import lookup_of_mapping
from delivery.models import JournalEntry, JournalKind
from subscriptions.models import ConfigurationChange, Publisher, Subscriber, Subscription
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import (
    apply,
    document,
    plan,
    reported,
    some_of_everything,
)

pytestmark = pytest.mark.django_db


def changed(**fields: object) -> dict[str, object]:
    return document(subscriptions=[{"subscriber": "abc", "name": "project-1008", **fields}])


def test_a_field_that_is_left_out_stays_as_it_is() -> None:
    some_of_everything()
    (planned_change,) = plan(changed(timeout_seconds=7)).changes
    assert planned_change.verb == Verb.CHANGE
    assert planned_change.fields == [PlannedField(name="timeout_seconds", before=30, after=7)]
    apply(changed(timeout_seconds=7))
    row = Subscription.objects.get(name="project-1008")
    assert (row.timeout_seconds, row.headers["a"]) == (7, "b")


def test_a_change_is_recorded_with_its_fields() -> None:
    some_of_everything()
    apply(changed(timeout_seconds=7, filter=""))
    (entry,) = ConfigurationChange.objects.all()
    assert (entry.action, entry.object_name) == ("changed", "abc/project-1008")
    assert entry.after == {"timeout_seconds": 7, "filter": ""}


def test_a_secret_that_changes_is_never_shown() -> None:
    some_of_everything()
    content = changed(headers={"X-Key": {"from": "env:NEW"}})
    planned = plan(content, secrets={"env:NEW": "new secret"})
    (field,) = planned.changes[0].fields
    assert (field.shown_before, field.shown_after) == (
        {"X-Key": "•••", "a": "•••"},
        {"X-Key": "•••"},
    )
    assert "secret" not in planned.digest
    apply(content, secrets={"env:NEW": "new secret"})
    assert Subscription.objects.get(name="project-1008").headers == {"X-Key": "new secret"}
    assert "new secret" not in str(ConfigurationChange.objects.values())


def test_another_secret_is_another_plan() -> None:
    some_of_everything()
    content = changed(headers={"X-Key": {"from": "env:NEW"}})
    assert len({plan(content, secrets={"env:NEW": value}).digest for value in ("1", "2", "1")}) == 2


def test_a_status_is_changed_as_a_person_would() -> None:
    some_of_everything()
    content = changed(status="INACTIVE")
    apply(content)
    assert Subscription.objects.get(name="project-1008").status == "INACTIVE"
    assert JournalEntry.objects.get(kind=JournalKind.DEACTIVATED).actor == "tester"
    apply(changed(status="ACTIVE"))
    assert JournalEntry.objects.filter(kind=JournalKind.ACTIVATED).exists()
    assert [row.after for row in ConfigurationChange.objects.order_by("id")] == [
        {"status": "INACTIVE"},
        {"status": "ACTIVE"},
    ]


def test_the_status_of_a_subscriber_is_changed_as_a_person_would() -> None:
    some_of_everything()
    abc = document(subscribers=[{"name": "abc", "status": "HELD", "max_in_flight": 9}])
    assert reported(plan(abc)) == ["change subscriber abc"]
    apply(abc)
    row = Subscriber.objects.get(name="abc")
    assert (row.status, row.max_in_flight) == ("HELD", 9)
    assert JournalEntry.objects.get(kind=JournalKind.HELD).actor == "tester"
    assert plan(abc).changes == []
    apply(document(subscribers=[{"name": "abc", "status": "INACTIVE"}]))
    assert JournalEntry.objects.filter(kind=JournalKind.DEACTIVATED).exists()
    apply(document(subscribers=[{"name": "abc", "status": "ACTIVE"}]))
    assert JournalEntry.objects.filter(kind=JournalKind.ACTIVATED).exists()
    assert Subscriber.objects.get(name="abc").status == "ACTIVE"


def test_a_held_subscriber_keeps_the_end_of_its_hold() -> None:
    some_of_everything()
    until = timezone.now() + timedelta(hours=1)
    Subscriber.objects.filter(name="warehouse").update(held_until=until)
    apply(
        document(subscribers=[{"name": "warehouse", "status": "HELD", "max_queued_to_send": 400}])
    )
    assert Subscriber.objects.get(name="warehouse").held_until == until


def test_a_publisher_may_get_all_event_types_or_some() -> None:
    some_of_everything()
    apply(document(publishers=[{"name": "anybody", "event_types": ["Builds"]}]))
    row = Publisher.objects.get(name="anybody")
    assert (row.all_event_types, [event_type.name for event_type in row.event_types.all()]) == (
        False,
        ["Builds"],
    )
    apply(document(publishers=[{"name": "anybody", "event_types": None}]))
    row.refresh_from_db()
    assert row.all_event_types


def test_the_order_in_the_file_makes_no_difference() -> None:
    some_of_everything()
    content = document(
        publishers=[
            {"name": "teamforge", "event_types": ["TeamForge.Artifact.Create", "Orders.Check"]}
        ]
    )
    assert plan(content).changes == []


def test_an_apply_wants_the_plan_that_was_seen() -> None:
    some_of_everything()
    as_seen = checked_document(changed(timeout_seconds=7), lookup=lookup_of_mapping({}))
    digest = plan_document(as_seen).digest
    Subscription.objects.filter(name="project-1008").update(timeout_seconds=9)
    with pytest.raises(PlanChangedError):
        apply_document(as_seen, digest=digest, actor="tester")
    assert Subscription.objects.get(name="project-1008").timeout_seconds == 9
    assert not ConfigurationChange.objects.exists()


def test_what_others_change_elsewhere_does_not_matter() -> None:
    some_of_everything()
    as_seen = checked_document(changed(timeout_seconds=7), lookup=lookup_of_mapping({}))
    digest = plan_document(as_seen).digest
    factories.subscription()
    apply_document(as_seen, digest=digest, actor="tester")
    assert Subscription.objects.get(name="project-1008").timeout_seconds == 7


def test_a_new_subscription_has_the_defaults_of_one_that_is_typed() -> None:
    some_of_everything()
    given = {
        "subscriber": "abc",
        "name": "new",
        "event_type": "Builds",
        "endpoint": "https://a.example/",
    }
    content = document(subscriptions=[given])
    assert reported(plan(content)) == ["create subscription abc/new"]
    assert [field.name for field in plan(content).changes[0].fields] == [
        "event_type",
        "endpoint",
        "policy",
        "forward_headers",
    ]
    apply(content)
    row = Subscription.objects.get(name="new")
    assert (row.policy.name, row.secrets.count(), row.timeout_seconds) == ("teamforge", 1, 30)


def test_a_subscriber_may_be_described_with_its_subscriptions() -> None:
    content = document(
        event_types=[{"name": "Orders"}],
        policies=[{"name": "mine", "pause_max_seconds": 5}],
        subscribers=[{"name": "abc", "max_queued_to_send": 50}],
        subscriptions=[
            {
                "subscriber": "abc",
                "name": "s",
                "event_type": "Orders",
                "policy": "mine",
                "mode": "PUSH",
                "endpoint": "PATCH:https://a.example/",
            },
            {"subscriber": "abc", "name": "t", "event_type": "Orders", "mode": "PULL"},
        ],
    )
    apply(content)
    assert plan(content).changes == []
    row = Subscription.objects.get(name="s")
    assert (row.policy.pause_max_seconds, row.subscriber.refill_level) == (5, 10)
