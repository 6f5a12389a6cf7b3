"""HELD by REST: subscriptions, subscribers and the installation; rights and refusals."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.models import JournalEntry
from subscriptions.models import ConfigurationChange, Scope, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, fields_of


@pytest.fixture
def paths(db: None) -> dict[str, str]:
    subscription = factories.subscription()
    return {
        f"subscriptions/{subscription.pk}": "status",
        f"subscribers/{subscription.subscriber.name}": "status",
        "installation": "sending",
    }


def test_each_is_held_until_a_moment_and_released(manager: Caller, paths: dict[str, str]) -> None:
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    for path, name in paths.items():
        held = manager.patch(path, {name: "HELD", "until": until, "catch_up_rate": 2.5})
        assert held.status == 200, held
        assert (held.body[name], held.body["catch_up_rate"]) == ("HELD", 2.5)
        assert held.body["until"] is not None
        assert manager.get(path).body[name] == "HELD"
        answer = manager.patch(path, {name: "ACTIVE"})
        assert (answer.body[name], answer.body["until"], answer.body["catch_up_rate"]) == (
            "ACTIVE",
            None,
            None,
        )


def test_the_same_again_is_no_change(manager: Caller, paths: dict[str, str]) -> None:
    for path, name in paths.items():
        for status in ("HELD", "HELD", "ACTIVE", "ACTIVE"):
            assert manager.patch(path, {name: status}).status == 200
    assert (ConfigurationChange.objects.count(), JournalEntry.objects.count()) == (6, 6)


def test_what_does_not_fit_is_refused_and_nothing_is_changed(
    manager: Caller, paths: dict[str, str]
) -> None:
    passed = (timezone.now() - timedelta(seconds=1)).isoformat()
    for path, name in paths.items():
        for given, field in (
            ({name: "STOPPED"}, name),
            ({name: "ACTIVE", "until": passed}, "until"),
            ({name: "HELD", "until": passed}, "until"),
            ({name: "HELD", "catch_up_rate": 0}, "catch_up_rate"),
            ({"catch_up_rate": 3}, "catch_up_rate"),
            ({name: "HELD", "backlog": "deliver"}, "backlog"),
        ):
            answer = manager.patch(path, given)
            assert answer.status == 400, (path, given, answer)
            assert field in fields_of(answer.body)
    assert not ConfigurationChange.objects.exists()


def test_a_subscriber_is_made_inactive_and_active_with_its_backlog_cancelled(
    manager: Caller,
) -> None:
    delivery = factories.delivery()
    path = f"subscribers/{delivery.subscription.subscriber.name}"
    assert manager.patch(path, {"status": "INACTIVE"}).body["status"] == "INACTIVE"
    assert manager.get(f"deliveries/{delivery.pk}").body["held"]
    assert manager.patch(path, {"status": "ACTIVE", "backlog": "cancel"}).status == 200
    assert Subscription.objects.get().cancellation_id is not None


def test_a_subscription_may_begin_held(manager: Caller) -> None:
    fields = {
        "name": "a",
        "subscriber": factories.subscriber().name,
        "event_type": factories.event_type().name,
        "mode": "PULL",
        "status": "HELD",
    }
    assert manager.post("subscriptions", fields).body["status"] == "HELD"
    assert [row.kind for row in JournalEntry.objects.all()] == ["HELD"]


def test_only_keys_that_manage_hold_sending(paths: dict[str, str]) -> None:
    reader = caller(Scope.READ)
    assert reader.get("installation").body["sending"] == "ACTIVE"
    for path, name in paths.items():
        assert reader.patch(path, {name: "HELD"}).status == 403


def test_a_subscription_alone_may_be_shadow(manager: Caller, paths: dict[str, str]) -> None:
    for path, name in paths.items():
        answer = manager.patch(path, {name: "SHADOW"})
        if path.startswith("subscriptions/"):
            assert (answer.status, answer.body["status"]) == (200, "SHADOW")
            assert (
                manager.get("subscriptions?status=SHADOW").body["results"][0]["status"] == "SHADOW"
            )
        else:
            assert answer.status == 400
            assert name in fields_of(answer.body)
    assert [row.kind for row in JournalEntry.objects.all()] == ["SHADOW"]
