"""Two people apply documents at once: the first is applied, the other must be planned again."""

from collections.abc import Callable
from typing import Any

import pytest

from delivery.configuration.applying import apply_document, checked_document, plan_document
from delivery.configuration.document.apply import PlanChangedError
from delivery.configuration.document.secrets import lookup_of_mapping
from subscriptions.models import Subscription
from tests.races.test_deleting_subscriptions import publishing
from tests.races.transactions import meet
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def applying(content: Any, *, prune: bool = False) -> Callable[[], object]:
    """Plan now, and return a function to apply the plan."""
    document = checked_document(content, lookup=lookup_of_mapping({}), prune=prune)
    digest = plan_document(document).digest
    return lambda: apply_document(document, digest=digest, actor="tester")


def with_timeout(row: Subscription, seconds: int) -> dict[str, Any]:
    entry = {"subscriber": row.subscriber.name, "name": row.name, "timeout_seconds": seconds}
    return {"format": 1, "subscriptions": [entry]}


def test_of_two_who_change_the_same_the_second_plans_again() -> None:
    row = factories.subscription()
    first, second = applying(with_timeout(row, 7)), applying(with_timeout(row, 8))
    assert isinstance(meet(first, second), PlanChangedError)
    row.refresh_from_db()
    assert row.timeout_seconds == 7


def test_of_two_who_make_the_same_the_second_plans_again() -> None:
    content = {"format": 1, "event_types": [{"name": "Orders"}], "subscribers": [{"name": "abc"}]}
    assert isinstance(meet(applying(content), applying(content)), PlanChangedError)


def test_who_changes_by_hand_meanwhile_is_not_overwritten() -> None:
    row = factories.subscription()
    by_hand = Subscription.objects.filter(pk=row.pk)
    assert isinstance(
        meet(lambda: by_hand.update(timeout_seconds=9), applying(with_timeout(row, 7))),
        PlanChangedError,
    )
    row.refresh_from_db()
    assert row.timeout_seconds == 9


def test_a_subscription_that_is_published_to_meanwhile_is_not_deleted() -> None:
    row = factories.subscription()
    pruning = applying({"format": 1, "subscriptions": []}, prune=True)
    assert isinstance(meet(publishing(row.event_type), pruning), PlanChangedError)
    assert Subscription.objects.filter(pk=row.pk).exists()


def test_of_two_who_make_rivals_the_second_plans_again() -> None:
    event_type = factories.event_type("Orders", kind="SYNC")
    factories.subscriber("abc")

    def rival(name: str) -> dict[str, Any]:
        entry = {
            "subscriber": "abc",
            "name": name,
            "event_type": "Orders",
            "endpoint": "https://a.example/",
        }
        return {"format": 1, "subscriptions": [entry]}

    assert isinstance(meet(applying(rival("a")), applying(rival("b"))), PlanChangedError)
    assert [row.name for row in event_type.subscriptions.all()] == ["a"]
