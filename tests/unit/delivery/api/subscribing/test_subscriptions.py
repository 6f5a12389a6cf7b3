"""Subscriptions: checked before they are saved, their secrets masked afterwards."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from subscriptions.models import SigningSecret, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, Json, created, fields_of, refused


def valid(**fields: Any) -> Json:
    return {
        "name": "orders",
        "subscriber": "crm",
        "event_type": "Order.Created",
        "endpoint": "https://127.0.0.1/hook",
    } | fields


def test_a_subscription_has_sensible_defaults_and_its_secret_is_shown_once(
    configured: Caller,
) -> None:
    made = created(configured.post("subscriptions", valid()))
    assert made["policy"] == "teamforge"
    assert made["status"] == "ACTIVE"
    assert made["mode"] == "PUSH"
    assert made["timeout_seconds"] == 30
    assert made["auth"] == {"type": "none"}
    assert made["secret"].startswith("whsec_")
    assert SigningSecret.objects.get().secret == made["secret"]
    read = configured.get(f"subscriptions/{made['id']}")
    assert read.body == {name: value for name, value in made.items() if name != "secret"}


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "example.com/hook",
        "ftp://example.com/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://user:password@example.com/",
        "https://example.com/#fragment",
        "https://example.com:0/",
        "https://example.com:70000/",
        "HEAD:https://example.com/",
        "https://exa mple.com/",
        "https://example.com/\r\nX: y",
        "https://127.1/",
        "https://2130706433/",
        "https://[fe80::1%25eth0]/",
        "https://" + "x" * 2001,
        None,
        17,
    ],
)
def test_an_endpoint_is_a_url_perhaps_with_a_method(configured: Caller, endpoint: Any) -> None:
    assert fields_of(refused(configured.post("subscriptions", valid(endpoint=endpoint)), 400)) == {
        "endpoint"
    }
    assert not Subscription.objects.exists()


def test_an_endpoint_whose_name_does_not_resolve_yet_is_accepted(configured: Caller) -> None:
    created(
        configured.post("subscriptions", valid(endpoint="PATCH:https://not-there-yet.invalid/hook"))
    )


def test_without_an_endpoint_a_subscription_is_refused(configured: Caller) -> None:
    refused(
        configured.post(
            "subscriptions", {name: value for name, value in valid().items() if name != "endpoint"}
        ),
        400,
    )


def test_a_wrong_filter_is_refused_with_line_and_column(configured: Caller) -> None:
    problem = refused(
        configured.post("subscriptions", valid(filter="$$->'Body'->>'a' = 'b'\nAND NOT")), 400
    )
    (error,) = problem["errors"]
    assert error["field"] == "filter"
    assert error["line"] == 2
    assert error["column"] > 1


@pytest.mark.parametrize("field", ["subscriber", "event_type", "policy"])
def test_referenced_objects_must_exist(configured: Caller, field: str) -> None:
    assert fields_of(refused(configured.post("subscriptions", valid(**{field: "none"})), 400)) == {
        field
    }


def test_a_name_is_in_use_only_within_a_subscriber(configured: Caller) -> None:
    factories.subscriber("erp")
    created(configured.post("subscriptions", valid()))
    refused(configured.post("subscriptions", valid()), 409, "name-in-use")
    created(configured.post("subscriptions", valid(subscriber="erp")))


def test_a_subscription_stays_with_its_subscriber_and_event_type(configured: Caller) -> None:
    factories.subscriber("erp")
    factories.event_type("Other")
    made = created(configured.post("subscriptions", valid()))
    path = f"subscriptions/{made['id']}"
    assert fields_of(refused(configured.patch(path, {"subscriber": "erp"}), 400)) == {"subscriber"}
    assert fields_of(refused(configured.patch(path, {"event_type": "Other"}), 400)) == {
        "event_type"
    }
    assert configured.patch(path, {"subscriber": "crm"}).status == 200


def test_a_subscription_with_deliveries_is_made_inactive_rather_than_deleted(
    configured: Caller,
) -> None:
    made = created(configured.post("subscriptions", valid()))
    factories.delivery(subscription=Subscription.objects.get())
    assert (
        "INACTIVE"
        in refused(configured.delete(f"subscriptions/{made['id']}"), 409, "in-use")["detail"]
    )
    assert Subscription.objects.exists()


def test_a_subscription_without_deliveries_is_deleted(configured: Caller) -> None:
    made = created(configured.post("subscriptions", valid()))
    assert configured.delete(f"subscriptions/{made['id']}").status == 204
    assert not SigningSecret.objects.exists()


def test_the_list_is_selected_by_subscriber_event_type_and_status(configured: Caller) -> None:
    created(configured.post("subscriptions", valid()))
    factories.subscription()
    for query in [
        "subscriber=crm",
        "event_type=Order.Created",
        "name=orders",
        "status=ACTIVE&subscriber=crm",
    ]:
        assert [
            row["name"] for row in configured.get(f"subscriptions?{query}").body["results"]
        ] == ["orders"]
    assert configured.get("subscriptions?status=INACTIVE").body["results"] == []
    refused(configured.get("subscriptions?status=PAUSED"), 400)


def test_pages_of_subscriptions_cost_the_same_however_many_there_are(
    manager: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(4):
        factories.subscription()
    # Recording the first use of the key is one.
    with django_assert_num_queries(3):
        assert len(manager.get("subscriptions").body["results"]) == 4


@pytest.mark.parametrize("text", ["proj1011 ", " proj1011", " ", "  a b  "])
def test_a_header_string_that_no_header_can_be_is_refused(configured: Caller, text: str) -> None:
    problem = refused(configured.post("subscriptions", valid(header_filter_string=text)), 400)
    assert fields_of(problem) == {"header_filter_string"}
    assert "remove the blanks" in str(problem["errors"])
    assert not Subscription.objects.exists()
