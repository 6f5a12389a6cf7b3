"""The join of a subscription is checked before it is saved."""

import pytest

from subscriptions.models import Kind
from tests.support import factories
from tests.unit.delivery.api.client import Caller, created
from tests.unit.delivery.api.subscribing.test_subscriptions_dedup_and_probe import valid

PATH = "$$->'Body'->>'order'"
JOIN = {"join_mode": "ALL", "join_name": "order"}


@pytest.fixture
def configured(manager: Caller) -> Caller:
    factories.event_type("Order.Created")
    factories.event_type("Order.Work", kind=Kind.QUEUE)
    factories.subscriber("crm")
    return manager


def test_the_default_is_no_join(configured: Caller) -> None:
    made = created(configured.post("subscriptions", valid()))
    fields = ("join_mode", "join_name", "join_path", "join_seconds")
    assert [made[field] for field in fields] == ["NONE", "", "", 86_400]


def test_a_join_is_stored_and_ended_by_its_mode(configured: Caller) -> None:
    made = created(configured.post("subscriptions", valid(**JOIN, join_path=PATH, join_seconds=60)))
    assert (made["join_name"], made["join_path"], made["join_seconds"]) == ("order", PATH, 60)
    ended = configured.patch(f"subscriptions/{made['id']}", {"join_mode": "NONE"}).body
    assert (ended["join_mode"], ended["join_name"], ended["join_path"]) == ("NONE", "", "")
