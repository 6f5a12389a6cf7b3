"""The message headers that a subscription forwards: its own choice, or its event type's."""

from typing import Any

import pytest

from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, Json, created, fields_of, refused


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


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, ["x-github-*"]),
        ({"forward_headers": []}, []),
        ({"forward_headers": ["Traceparent", "X-GitHub-*"]}, ["traceparent", "x-github-*"]),
        ({"mode": "PULL", "endpoint": ""}, []),
    ],
)
def test_a_new_subscription_sends_along_what_its_event_type_says(
    configured: Caller, given: Json, stored: list[str]
) -> None:
    configured.patch("event-types/Order.Created", {"forward_headers": ["X-GitHub-*"]})
    made = created(configured.post("subscriptions", valid(**given)))
    assert made["forward_headers"] == stored
    assert Subscription.objects.get().forward_headers == stored


def test_what_exists_sends_along_what_it_did(configured: Caller) -> None:
    made = created(configured.post("subscriptions", valid()))
    configured.patch("event-types/Order.Created", {"forward_headers": ["*"]})
    assert configured.get(f"subscriptions/{made['id']}").body["forward_headers"] == []


@pytest.mark.parametrize(
    ("patterns", "says"),
    [
        (["a b"], "is no header name"),
        (["x-a", "content-*"], "content-* is never sent along"),
        ([7], "Not a valid string"),
        ("x-a", "Expected a list"),
        ([f"x-{number}" for number in range(51)], "at most 50"),
    ],
)
def test_patterns_that_can_match_nothing_are_refused(
    configured: Caller, patterns: Any, says: str
) -> None:
    for path, body in (("subscriptions", valid()), ("event-types", {"name": "Other"})):
        answer = configured.post(path, body | {"forward_headers": patterns})
        assert says in str(refused(answer, 400))
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"forward_authorization": True}, "forward_authorization"),
        (
            {
                "forward_authorization": True,
                "event_type": "Asked",
                "auth": {"type": "bearer", "token": "t"},
            },
            "auth",
        ),
        (
            {
                "forward_authorization": True,
                "event_type": "Asked",
                "headers": {"Authorization": "t"},
            },
            "auth",
        ),
        ({"forward_authorization": True, "mode": "PULL", "endpoint": ""}, "forward_authorization"),
        ({"forward_headers": ["*"], "mode": "PULL", "endpoint": ""}, "forward_headers"),
    ],
)
def test_what_could_not_be_handed_on_is_refused(
    configured: Caller, given: Json, field: str
) -> None:
    factories.event_type("Asked", kind="SYNC")
    assert field in fields_of(refused(configured.post("subscriptions", valid(**given)), 400))


def test_a_sync_subscription_may_hand_on_the_publishers_credential(configured: Caller) -> None:
    factories.event_type("Asked", kind="SYNC")
    made = created(
        configured.post("subscriptions", valid(event_type="Asked", forward_authorization=True))
    )
    assert made["forward_authorization"] is True
    answer = configured.patch(
        f"subscriptions/{made['id']}", {"auth": {"type": "bearer", "token": "t"}}
    )
    assert "auth" in fields_of(refused(answer, 400))
