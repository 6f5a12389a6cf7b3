"""Refusals of a document: all faults at once, with object and field, and no change."""

from typing import Any

import pytest

from delivery.configuration.document.document import RefusedDocumentError
from delivery.configuration.document.document_json import parse_document
from delivery.configuration.document.export import export_configuration
from subscriptions.models import CommonScript, EventType, Kind, Subscription
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import (
    apply,
    document,
    faults,
    plan,
    reported,
    some_of_everything,
)

pytestmark = pytest.mark.django_db


def subscription(**fields: Any) -> dict[str, Any]:
    given = {
        "subscriber": "abc",
        "name": "s",
        "event_type": "Orders",
        "endpoint": "https://a.example/",
    }
    return given | fields


def orders(*subscriptions: Any, **fields: Any) -> dict[str, Any]:
    return document(
        event_types=[{"name": "Orders", **fields}],
        subscribers=[{"name": "abc"}],
        subscriptions=list(subscriptions),
    )


def test_all_faults_are_reported_at_once_with_object_and_field() -> None:
    content = orders(
        subscription(filter="$$->'Body' =", timeout_seconds=0),
        subscription(name="t", subscriber="nobody", headers={"Host": "x"}),
        kind="FANOUT",
    )
    assert {(fault.object, fault.field) for fault in faults(content)} == {
        ("event type Orders", "kind"),
        ("subscription abc/s", "filter"),
        ("subscription abc/s", "timeout_seconds"),
        ("subscription nobody/t", "subscriber"),
        ("subscription nobody/t", "headers"),
    }


def test_a_document_of_which_half_is_wrong_changes_nothing() -> None:
    some_of_everything()
    before = export_configuration()
    content = orders(subscription(), subscription(name="t", endpoint="nowhere"))
    with pytest.raises(RefusedDocumentError):
        apply(content)
    assert export_configuration() == before
    assert not EventType.objects.filter(name="Orders").exists()


def test_what_refers_to_something_refused_is_not_refused_for_that() -> None:
    found = faults(orders(subscription(), kind="FANOUT"))
    assert [fault.object for fault in found] == ["event type Orders"]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ([], ""),
        ({}, ""),
        ({"format": 2}, ""),
        (document(webhooks=[]), "webhooks"),
        (document(policies={}), "policies"),
        (document(policies=[{"description": "x"}]), ""),
        (document(publishers=[{"name": "a"}, {"name": "a"}]), ""),
    ],
)
def test_what_has_not_the_form_of_a_document_is_refused(content: Any, field: str) -> None:
    assert [fault.field for fault in faults(content)] == [field]


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"\xff",
        b'{"format": 1, "format": 1}',
        b"[" * 100_000,
        b'{"a": "\\ud800"}',
        b'{"a": NaN}',
        b'{"a": ' + b"7" * 4301 + b"}",
    ],
)
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(RefusedDocumentError):
        parse_document(text)


def test_a_subscriber_cannot_be_shadow() -> None:
    (found,) = faults(document(subscribers=[{"name": "abc", "status": "SHADOW"}]))
    assert (found.object, found.field) == ("subscriber abc", "status")


def test_an_unknown_field_is_refused() -> None:
    (fault,) = faults(document(publishers=[{"name": "a", "id": 7}]))
    assert (fault.object, fault.field) == ("publisher a", "id")


@pytest.mark.parametrize(
    "content",
    [document(policies=[{"name": "strict"}]), document(event_types=[{"name": "Inturn.X"}])],
)
def test_inturns_own_stay_as_they_are(content: Any) -> None:
    assert [fault.field for fault in faults(content)] == ["name"]


def test_a_secret_in_the_file_is_refused() -> None:
    (fault,) = faults(orders(subscription(auth={"type": "bearer", "token": "s3cret"})))
    assert fault.field == "auth.token"
    assert "s3cret" not in fault.detail


@pytest.mark.parametrize("reference", ["env:NOT_SET", "file:/nowhere"])
def test_a_secret_without_a_value_is_refused_where_none_is_stored(reference: str) -> None:
    (fault,) = faults(orders(subscription(headers={"X-Key": {"from": reference}})))
    assert fault.field == "headers.X-Key"
    assert reference in fault.detail


@pytest.mark.parametrize(
    "value", [{}, {"from": 1}, {"from": "vault:x"}, {"from": "env:A", "to": "b"}]
)
def test_what_is_no_reference_is_refused(value: Any) -> None:
    (fault,) = faults(orders(subscription(headers={"X-Key": value})))
    assert fault.field == "headers.X-Key"


def test_an_address_that_is_not_allowed_is_refused() -> None:
    (fault,) = faults(orders(subscription(endpoint="http://169.254.169.254/")))
    assert (fault.object, fault.field) == ("subscription abc/s", "endpoint")


def test_a_server_that_is_not_allowed_is_reported_once() -> None:
    urls = [subscription(name=name, endpoint=f"http://10.0.0.1/{name}") for name in "abc"]
    (fault,) = faults(orders(*urls))
    assert fault.object == "subscription abc/a"
    assert "INTURN_ALLOWED_NETWORKS. So are 2 others of this server." in fault.detail


def test_the_kind_of_an_event_type_cannot_be_changed() -> None:
    factories.event_type("Orders")
    (fault,) = faults(document(event_types=[{"name": "Orders", "kind": "QUEUE"}]))
    assert (fault.object, fault.field) == ("event type Orders", "kind")


def test_rivals_of_a_sync_event_type_are_refused() -> None:
    found = faults(orders(subscription(), subscription(name="t"), kind="SYNC"))
    assert [(fault.object, fault.field) for fault in found] == [("subscription abc/t", "filter")]


def test_a_rival_that_is_pruned_is_none() -> None:
    orders_ = factories.event_type("Orders", kind=Kind.SYNC)
    row = factories.subscription(event_type=orders_, subscriber=factories.subscriber("abc"))
    content = document(subscriptions=[subscription()])
    assert faults(content)
    assert reported(plan(content, prune=True)) == [
        "create subscription abc/s",
        f"delete subscription {row}",
    ]
    apply(content, prune=True)
    assert [str(subscription) for subscription in Subscription.objects.all()] == ["abc/s"]


def test_what_has_deliveries_is_not_pruned() -> None:
    row = factories.delivery().subscription
    (fault,) = faults(document(subscriptions=[]), prune=True)
    assert fault.object == f"subscription {row}"
    assert "INACTIVE" in fault.detail


@pytest.mark.parametrize("section", ["event_types", "policies", "subscribers"])
def test_what_a_subscription_needs_is_not_pruned(section: str) -> None:
    some_of_everything()
    found = faults(document(**{section: []}), prune=True)
    assert found
    assert all("subscriptions" in fault.detail for fault in found)


def test_an_included_common_script_is_not_pruned() -> None:
    CommonScript.objects.create(name="dates", text="var a;")
    CommonScript.objects.create(name="unused", text="var b;")
    factories.subscription("s", subscriber=factories.subscriber("abc"), script="$include$dates")
    (fault,) = faults(document(common_scripts=[]), prune=True)
    assert (fault.object, fault.detail) == (
        "common script dates",
        (
            "It has scripts that include it (subscription abc/s), so it cannot be deleted; "
            "leave it in the document."
        ),
    )


def test_common_scripts_with_which_a_stored_script_is_not_valid_are_refused() -> None:
    CommonScript.objects.create(name="dates", text="var a;")
    row = factories.subscription(script="$include$dates\nlet start;")
    changed = document(common_scripts=[{"name": "dates", "text": "var start;"}])
    (fault,) = faults(changed)
    assert (fault.object, fault.field) == (f"subscription {row}", "script")
    assert "with the common scripts: line 2, column 10: SyntaxError" in fault.detail
    entry = {
        "subscriber": row.subscriber.name,
        "name": row.name,
        "script": "$include$dates\nvar start;",
    }
    apply(changed | {"subscriptions": [entry]})
    assert CommonScript.objects.get().text == "var start;"


def test_common_scripts_of_a_document_include_each_other_in_any_order() -> None:
    scripts = [{"name": "a", "text": "$include$b"}, {"name": "b", "text": "var b;"}]
    apply(document(common_scripts=scripts))
    assert plan(document(common_scripts=scripts)).changes == []
    scripts[1]["text"] = "$include$a"
    assert {
        (refusal.object, refusal.field) for refusal in faults(document(common_scripts=scripts))
    } == {
        ("common script a", "text"),
        ("common script b", "text"),
    }
    (fault,) = faults(document(common_scripts=[{"name": "c", "text": "$include$none"}]))
    assert "there is no common script none" in fault.detail


def test_two_subscribers_with_one_queue_id_are_refused() -> None:
    factories.subscriber("abc", queue_id="q-1")
    (fault,) = faults(document(subscribers=[{"name": "depot", "queue_id": "q-1"}]))
    assert (fault.object, fault.field) == ("subscriber depot", "queue_id")
    swapped = [{"name": "abc", "queue_id": ""}, {"name": "depot", "queue_id": "q-1"}]
    apply(document(subscribers=swapped))
    assert plan(document(subscribers=swapped)).changes == []


def test_failures_go_to_a_subscriber_that_the_document_makes() -> None:
    content = document(publishers=[{"name": "github", "errors_to": "ops"}])
    (fault,) = faults(content)
    assert (fault.object, fault.field) == ("publisher github", "errors_to")
    apply(content | {"subscribers": [{"name": "ops"}]})
    assert plan(content).changes == []
