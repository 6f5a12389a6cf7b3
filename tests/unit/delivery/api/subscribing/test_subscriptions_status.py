"""Making a subscription INACTIVE and ACTIVE again, and the effect on its backlog."""

import pytest

from delivery.models import Delivery, Resubmission
from delivery.states import Status
from subscriptions.models import ConfigurationChange, Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.api.client import Caller, fields_of, refused
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import finish


@pytest.fixture
def subscription(db: None) -> Subscription:
    delivery = factories.delivery()
    factories.delivery(Status.DELIVERED, subscription=delivery.subscription)
    return delivery.subscription


def statuses() -> list[str]:
    return sorted(Delivery.objects.values_list("status", flat=True))


def test_inactive_holds_and_active_delivers_the_backlog(
    manager: Caller, subscription: Subscription
) -> None:
    path = f"subscriptions/{subscription.pk}"
    answer = manager.patch(path, {"status": "INACTIVE"})
    assert answer.status == 200, answer
    assert answer.body["status"] == "INACTIVE"
    assert statuses() == ["DELIVERED", "PENDING"]
    assert (
        manager.patch(path, {"status": "ACTIVE", "backlog": "deliver"}).body["status"] == "ACTIVE"
    )
    assert statuses() == ["DELIVERED", "PENDING"]


def test_active_may_cancel_the_backlog(manager: Caller, subscription: Subscription) -> None:
    path = f"subscriptions/{subscription.pk}"
    manager.patch(path, {"status": "INACTIVE"})
    assert manager.patch(path, {"status": "ACTIVE", "backlog": "cancel"}).status == 200
    finish(Resubmission.objects.get())
    assert statuses() == ["CANCELLED", "DELIVERED"]


def test_without_a_choice_the_backlog_is_kept(manager: Caller, subscription: Subscription) -> None:
    manager.patch(f"subscriptions/{subscription.pk}", {"status": "INACTIVE"})
    manager.patch(f"subscriptions/{subscription.pk}", {"status": "ACTIVE"})
    assert statuses() == ["DELIVERED", "PENDING"]


def test_each_toggle_is_logged_once(manager: Caller, subscription: Subscription) -> None:
    manager.patch(f"subscriptions/{subscription.pk}", {"status": "INACTIVE"})
    manager.patch(f"subscriptions/{subscription.pk}", {"status": "INACTIVE"})
    change = ConfigurationChange.objects.get()
    assert (change.before, change.after) == ({"status": "ACTIVE"}, {"status": "INACTIVE"})


def test_a_toggle_and_another_change_are_made_together(
    manager: Caller, subscription: Subscription
) -> None:
    answer = manager.patch(
        f"subscriptions/{subscription.pk}", {"status": "INACTIVE", "timeout_seconds": 7}
    )
    assert (answer.body["status"], answer.body["timeout_seconds"]) == ("INACTIVE", 7)
    assert ConfigurationChange.objects.count() == 2


def test_the_answer_contains_the_time_of_the_change(
    manager: Caller, subscription: Subscription
) -> None:
    answer = manager.patch(f"subscriptions/{subscription.pk}", {"status": "INACTIVE"})
    assert answer.body == manager.get(f"subscriptions/{subscription.pk}").body


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"status": "PAUSED"}, "status"),
        ({"status": 1}, "status"),
        ({"status": "ACTIVE", "backlog": "drop"}, "backlog"),
        ({"status": "INACTIVE", "backlog": "cancel"}, "backlog"),
        ({"backlog": "cancel"}, "backlog"),
        ({"status": "INACTIVE", "timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_a_wrong_change_changes_nothing(
    manager: Caller, subscription: Subscription, body: object, field: str
) -> None:
    assert fields_of(refused(manager.patch(f"subscriptions/{subscription.pk}", body), 400)) == {
        field
    }
    assert Subscription.objects.get(pk=subscription.pk).status == SubscriptionStatus.ACTIVE
    assert statuses() == ["DELIVERED", "PENDING"]
