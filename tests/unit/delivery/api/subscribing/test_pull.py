"""PULL subscriptions: created without an endpoint, and without fields that only concern sending."""

from typing import Any

import pytest

from subscriptions.models import EventType, Kind, SigningSecret, Subscription
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


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (
            "endpoint",
            "https://127.0.0.1/hook",
            "its messages stay in the mailbox until they are fetched",
        ),
        ("headers", {"X-A": "1"}, "clients get the message's own headers"),
        ("auth", {"type": "bearer", "token": "abc"}, "clients fetch with a key of the subscriber"),
        ("timeout_seconds", 5, "by visibility"),
        ("lets_pass_on_timeout", True, "no publisher waits for an answer"),
        ("probe_url", "https://127.0.0.1/health", "no lane that could be suspended"),
        ("policy", "strict", "max_receives bounds how often a message is fetched"),
        ("max_receives", 0, "greater than or equal to 1"),
    ],
)
def test_fields_without_effect_are_refused_with_the_alternative(
    configured: Caller, made: Json, field: str, value: Any, said: str
) -> None:
    other = valid(name="other") | {field: value}
    for answer in (
        configured.post("subscriptions", other),
        configured.patch(f"subscriptions/{made['id']}", {field: value}),
    ):
        problem = refused(answer, 400)
        assert fields_of(problem) == {field}
        assert said in str(problem["errors"])


@pytest.mark.parametrize(
    ("kind", "said"), [(Kind.QUEUE, "one endpoint of a group"), (Kind.SYNC, "does not answer")]
)
def test_a_mailbox_is_for_topics(configured: Caller, kind: Kind, said: str) -> None:
    EventType.objects.update(kind=kind)
    problem = refused(configured.post("subscriptions", valid()), 400)
    assert fields_of(problem) == {"mode"}
    assert said in str(problem["errors"])


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


def test_only_a_pull_subscription_counts_receives(configured: Caller) -> None:
    given = valid(mode="PUSH", endpoint="https://127.0.0.1/hook", max_receives=3)
    assert fields_of(refused(configured.post("subscriptions", given), 400)) == {"max_receives"}


def test_there_is_no_secret_to_rotate(configured: Caller, made: Json) -> None:
    problem = refused(configured.post(f"subscriptions/{made['id']}/secrets", {}), 409, "unsigned")
    assert "no signing secret" in problem["detail"]


def test_a_push_subscription_keeps_its_endpoint(configured: Caller) -> None:
    endpoint = "https://127.0.0.1/hook"
    push = created(configured.post("subscriptions", valid(mode="PUSH", endpoint=endpoint)))
    problem = refused(configured.patch(f"subscriptions/{push['id']}", {"endpoint": ""}), 400)
    assert fields_of(problem) == {"endpoint"}
    assert Subscription.objects.get().endpoint == endpoint
