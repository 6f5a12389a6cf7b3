"""The join of a subscription is checked before it is saved."""

import pytest

from subscriptions.models import Kind
from tests.support import factories
from tests.unit.delivery.api.client import Caller, Json, created, fields_of, refused
from tests.unit.delivery.api.subscribing.test_dedup_and_probe import valid

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


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"join_mode": "ANY", "join_name": "order"}, "join_mode"),
        ({"join_mode": "ALL"}, "join_name"),
        ({"join_name": "order"}, "join_name"),
        ({"join_path": PATH}, "join_path"),
        (JOIN | {"join_path": "order"}, "join_path"),
        (JOIN | {"join_seconds": 0}, "join_seconds"),
        (JOIN | {"join_seconds": 32 * 86_400}, "join_seconds"),
        (JOIN | {"event_type": "Order.Work"}, "join_mode"),
        (JOIN | {"mode": "PULL", "endpoint": ""}, "join_mode"),
    ],
)
def test_contradictory_joins_are_refused(configured: Caller, given: Json, field: str) -> None:
    assert fields_of(refused(configured.post("subscriptions", valid(**given)), 400)) == {field}
