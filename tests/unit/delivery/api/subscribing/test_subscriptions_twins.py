"""A second subscription for the same messages is saved, with a warning."""

from typing import Any

import pytest

from subscriptions.models import EventType, Kind, Subscriber, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller

FILTER = "$$->'Body'->>'a' = 'b'"
SPELLED = "$$->'Body'->>'a'='b'"


def first(subscriber: str = "crm", **fields: Any) -> Subscription:
    owner, _ = Subscriber.objects.get_or_create(name=subscriber)
    event_type, _ = EventType.objects.get_or_create(name="Order.Created")
    given = {"subscriber": owner, "event_type": event_type, "filter": FILTER}
    return factories.subscription("one", **given | fields)


def second(manager: Caller, **fields: Any) -> str:
    wanted = {
        "name": "two",
        "subscriber": "crm",
        "event_type": "Order.Created",
        "endpoint": "https://127.0.0.1/hook",
        "filter": SPELLED,
    }
    answer = manager.post("subscriptions", wanted | fields)
    assert answer.status == 201, answer
    return str(answer.headers.get("Inturn-Warning", ""))


def test_a_second_subscription_for_the_same_messages_is_reported(manager: Caller) -> None:
    row = first()
    warning = second(manager)
    assert warning.startswith("crm gets each of these messages more than once: one has the same")
    changed = manager.patch(f"subscriptions/{row.pk}", {"description": "x"})
    assert "more than once: two has" in changed.headers["Inturn-Warning"]
    other = manager.patch(f"subscriptions/{row.pk}", {"filter": ""})
    assert "Inturn-Warning" not in other.headers


@pytest.mark.parametrize(
    "fields",
    [{"filter": ""}, {"header_filter_string": "p"}, {"status": "INACTIVE"}, {"status": "SHADOW"}],
)
def test_others_that_select_other_messages_are_not(manager: Caller, fields: dict[str, Any]) -> None:
    first(**fields)
    assert second(manager) == ""


@pytest.mark.parametrize(
    ("subscriber", "kind", "match_mode"),
    [("other", Kind.TOPIC, "ALL"), ("crm", Kind.QUEUE, "ALL"), ("crm", Kind.TOPIC, "FIRST")],
)
def test_neither_are_queues_other_subscribers_and_the_first_match(
    manager: Caller, subscriber: str, kind: Kind, match_mode: str
) -> None:
    factories.event_type("Order.Created", kind=kind)
    factories.subscriber("crm", match_mode=match_mode)
    first(subscriber)
    assert second(manager) == ""
