"""PULL subscriptions: created without an endpoint, and without fields that only concern sending."""

from typing import Any

import pytest

from subscriptions.models import SigningSecret, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, Json, created, fields_of, refused


def valid(**fields: Any) -> Json:
    return {
        "name": "orders",
        "subscriber": "crm",
        "event_type": "Order.Created",
        "mode": "PULL",
    } | fields


@pytest.fixture
def configured(manager: Caller) -> Caller:
    factories.event_type("Order.Created")
    factories.subscriber("crm")
    return manager


@pytest.fixture
def made(configured: Caller) -> Json:
    return created(configured.post("subscriptions", valid(max_receives=5)))


def test_a_pull_subscription_has_no_endpoint_and_no_signing_secret(made: Json) -> None:
    assert (made["mode"], made["endpoint"], made["secret"], made["max_receives"]) == (
        "PULL",
        "",
        None,
        5,
    )
    assert not SigningSecret.objects.exists()


def test_max_receives_is_optional(configured: Caller) -> None:
    assert created(configured.post("subscriptions", valid()))["max_receives"] is None


def test_the_answer_can_be_sent_back(configured: Caller, made: Json) -> None:
    unchangeable = {
        "id",
        "secret",
        "created_at",
        "updated_at",
        "status",
        "cancellation",
        "endpoint_state",
    }
    sent = {name: value for name, value in made.items() if name not in unchangeable}
    assert configured.patch(f"subscriptions/{made['id']}", sent).status == 200


def test_a_pull_subscription_can_deduplicate(configured: Caller) -> None:
    path = "$$->'Body'->>'id'"
    asked = valid(dedup_mode="PATH", dedup_path=path)
    assert created(configured.post("subscriptions", asked))["dedup_path"] == path


def test_the_mode_cannot_be_changed(configured: Caller, made: Json) -> None:
    endpoint = "https://127.0.0.1/hook"
    push = created(
        configured.post("subscriptions", valid(name="pushed", mode="PUSH", endpoint=endpoint))
    )
    for id, mode in ((made["id"], "PUSH"), (push["id"], "PULL")):
        problem = refused(configured.patch(f"subscriptions/{id}", {"mode": mode}), 400)
        assert fields_of(problem) == {"mode"}
        assert "create another subscription" in str(problem["errors"])


def test_there_is_no_secret_to_rotate(configured: Caller, made: Json) -> None:
    problem = refused(configured.post(f"subscriptions/{made['id']}/secrets", {}), 409, "unsigned")
    assert "no signing secret" in problem["detail"]


def test_a_push_subscription_keeps_its_endpoint(configured: Caller) -> None:
    endpoint = "https://127.0.0.1/hook"
    push = created(configured.post("subscriptions", valid(mode="PUSH", endpoint=endpoint)))
    problem = refused(configured.patch(f"subscriptions/{push['id']}", {"endpoint": ""}), 400)
    assert fields_of(problem) == {"endpoint"}
    assert Subscription.objects.get().endpoint == endpoint
