"""Subscriptions: checked before they are saved, their secrets masked afterwards."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from subscriptions.models import ConfigurationChange, SigningSecret, Subscription
from subscriptions.values.encryption import decrypt
from tests.support import factories
from tests.unit.subscriptions.api.client import Caller, Json, created, fields_of, refused

MASKED = "•••"


def valid(**fields: Any) -> Json:
    return {
        "name": "orders",
        "subscriber": "crm",
        "event_type": "Order.Created",
        "endpoint": "https://127.0.0.1/hook",
    } | fields


@pytest.fixture
def configured(manager: Caller) -> Caller:
    factories.event_type("Order.Created")
    factories.subscriber("crm")
    return manager


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


def test_headers_and_credentials_are_encrypted_and_masked(configured: Caller) -> None:
    auth = {"type": "basic", "username": "crm", "password": "sesame"}
    made = created(configured.post("subscriptions", valid(headers={"X-Token": "open"}, auth=auth)))
    assert made["headers"] == {"X-Token": MASKED}
    assert made["auth"] == {"type": "basic", "username": "crm", "password": MASKED}
    raw = (
        Subscription.objects.extra(select={"h": "headers", "a": "auth"}).values_list("h", "a").get()
    )
    assert "open" not in raw[0]
    assert "sesame" not in raw[1]
    assert decrypt(raw[1]) == auth
    logged = str(list(ConfigurationChange.objects.values()))
    assert "open" not in logged
    assert "sesame" not in logged


def test_a_masked_value_sent_back_is_unchanged(configured: Caller) -> None:
    auth = {"type": "bearer", "token": "abc"}
    made = created(
        configured.post("subscriptions", valid(headers={"X-A": "1", "X-B": "2"}, auth=auth))
    )
    path = f"subscriptions/{made['id']}"
    answer = configured.patch(path, {"headers": {"X-A": MASKED, "X-C": "3"}, "auth": made["auth"]})
    assert answer.status == 200, answer
    row = Subscription.objects.get()
    assert row.headers == {"X-A": "1", "X-C": "3"}
    assert row.auth == auth


def test_a_mask_without_anything_behind_it_is_refused(configured: Caller) -> None:
    refused(configured.post("subscriptions", valid(headers={"X-A": MASKED})), 400)
    refused(configured.post("subscriptions", valid(auth={"type": "bearer", "token": MASKED})), 400)
    refused(
        configured.post(
            "subscriptions", valid(auth={"type": "basic", "username": "u", "password": MASKED})
        ),
        400,
    )


def test_a_new_secret_is_logged_without_its_value(configured: Caller) -> None:
    made = created(configured.post("subscriptions", valid(headers={"X-A": "1"})))
    configured.patch(f"subscriptions/{made['id']}", {"headers": {"X-A": "2"}})
    change = ConfigurationChange.objects.first()
    assert change is not None
    assert change.action == "changed"
    assert change.after == {"headers": "•••, new value"}


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "b\r\nX-Injected: c"},
        {"X-A": "b\0"},
        {"X-A\r\nB": "c"},
        {"X A": "b"},
        {"": "b"},
        {"X-A": "é"},
        {"X-A": 1},
        {"X-A": None},
        {"X-A": ["b"]},
        {"Host": "evil.example"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Webhook-Id": "x"},
        {"webhook_signature": "x"},
        {"Inturn-Event": "x"},
        {"Content-Type": "text/plain"},
        {"X-A": "b", "x-a": "c"},
        {"X-A": "x" * 5000},
        {f"X-{number}": "b" for number in range(60)},
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(configured: Caller, headers: Any) -> None:
    assert fields_of(refused(configured.post("subscriptions", valid(headers=headers)), 400)) == {
        "headers"
    }
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    "auth",
    [
        {},
        {"type": "digest"},
        {"type": ["basic"]},
        {"type": "basic"},
        {"type": "basic", "username": "a:b", "password": "c"},
        {"type": "basic", "username": "", "password": "c"},
        {"type": "basic", "username": "a\r\nb", "password": "c"},
        {"type": "basic", "username": "a", "password": 1},
        {"type": "bearer", "token": "a b"},
        {"type": "bearer", "token": "a\r\nX: y"},
        {"type": "bearer", "token": ""},
        {"type": "bearer", "token": "a", "username": "b"},
        {"type": "none", "token": "a"},
        "Bearer x",
        None,
    ],
)
def test_credentials_that_cannot_be_sent_are_refused(configured: Caller, auth: Any) -> None:
    assert fields_of(refused(configured.post("subscriptions", valid(auth=auth)), 400)) == {"auth"}
    assert not Subscription.objects.exists()


def test_an_authorization_header_and_auth_exclude_each_other(configured: Caller) -> None:
    headers = {"Authorization": "ApiKey x"}
    made = created(configured.post("subscriptions", valid(headers=headers)))
    both = configured.patch(
        f"subscriptions/{made['id']}", {"auth": {"type": "bearer", "token": "x"}}
    )
    assert fields_of(refused(both, 400)) == {"auth"}


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


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::a00:1]",
        "0.0.0.0",
    ],
)
def test_an_endpoint_that_no_administrator_allowed_is_refused(
    configured: Caller, host: str
) -> None:
    problem = refused(configured.post("subscriptions", valid(endpoint=f"https://{host}/hook")), 400)
    assert fields_of(problem) == {"endpoint"}
    assert "INTURN_ALLOWED_NETWORKS" in problem["detail"]


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
