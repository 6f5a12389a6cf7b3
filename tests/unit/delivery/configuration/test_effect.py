"""The effect that a plan would have had on the last messages, computed by the database."""

from typing import Any

import pytest

from delivery.configuration.effect import Effect, effects_of
from delivery.models.message import public_id
from subscriptions.filters import document as seen
from subscriptions.matching.match import find_mismatch
from subscriptions.models import EventType, Subscriber, Subscription
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import document, plan

pytestmark = pytest.mark.django_db

CHEAP = "$$->'Body'->'price' < 10"


@pytest.fixture
def orders() -> EventType:
    """Twelve messages with prices 0 to 11; those with an even one have a FILTER_STRING."""
    event_type = factories.event_type("Orders")
    for price in range(12):
        headers = {"filter-string": "even"} if price % 2 == 0 else {}
        factories.message(b'{"price": %d}' % price, event_type=event_type, headers=headers)
    factories.message(b"no JSON", event_type=event_type, content_type="text/plain")
    return event_type


@pytest.fixture
def abc(orders: EventType) -> Subscription:
    return factories.subscription(
        "s", subscriber=factories.subscriber("abc"), event_type=orders, filter=CHEAP
    )


def effects(**fields: Any) -> list[Effect]:
    return effects_of(
        plan(document(subscriptions=[{"subscriber": "abc", "name": "s", **fields}]))
    ).effects


def test_a_narrower_filter_means_fewer_deliveries(abc: Subscription, orders: EventType) -> None:
    (effect,) = effects(filter="$$->'Body'->'price' < 3")
    assert (effect.asked, effect.more, effect.fewer) == (13, 0, 7)
    assert str(effect).startswith(
        "subscription abc/s: of the last 13 messages 7 deliveries fewer, for example of msg_"
    )


def test_another_filter_means_more_and_fewer(abc: Subscription) -> None:
    (effect,) = effects(filter=f"{CHEAP} AND NOT $$->'Body'->>'price' like '1%'")
    assert (effect.more, effect.fewer) == (0, 1)
    (effect,) = effects(filter="$$->'Body'->'price' > 8")
    assert (effect.more, effect.fewer) == (2, 9)
    assert "; 2 deliveries more, for example of" in str(effect)


def test_a_header_filter_string_counts(abc: Subscription) -> None:
    (effect,) = effects(header_filter_string="even")
    assert (effect.more, effect.fewer) == (0, 5)


def test_a_status_counts(abc: Subscription) -> None:
    (effect,) = effects(status="INACTIVE")
    assert (effect.more, effect.fewer) == (0, 10)


def test_shadow_means_fewer_deliveries_and_active_again_more(abc: Subscription) -> None:
    (effect,) = effects(status="SHADOW")
    assert (effect.more, effect.fewer) == (0, 10)
    Subscription.objects.update(status="SHADOW")
    (effect,) = effects(status="ACTIVE", filter=CHEAP)
    assert (effect.more, effect.fewer) == (10, 0)
    (effect,) = effects(filter="$$->'Body'->'price' < 3")
    assert (effect.more, effect.fewer) == (0, 7)


def test_held_means_no_delivery_fewer(abc: Subscription) -> None:
    assert effects(status="HELD") == []


@pytest.mark.parametrize(("status", "fewer"), [("INACTIVE", [10]), ("HELD", [])])
def test_the_status_of_its_subscriber_counts(
    abc: Subscription, status: str, fewer: list[int]
) -> None:
    planned = plan(document(subscribers=[{"name": "abc", "status": status}]))
    assert [effect.fewer for effect in effects_of(planned).effects] == fewer


def test_an_inactive_subscriber_that_becomes_active_gets_more(abc: Subscription) -> None:
    Subscriber.objects.update(status="INACTIVE")
    assert effects(filter="") == []
    (effect,) = effects_of(
        plan(document(subscribers=[{"name": "abc", "status": "ACTIVE"}]))
    ).effects
    assert (effect.more, effect.fewer) == (10, 0)
    assert effect.label == "subscription abc/s"


def test_one_that_is_made_or_deleted_counts(orders: EventType) -> None:
    factories.subscriber("abc")
    (effect,) = effects(event_type="Orders", endpoint="https://a.example/", filter=CHEAP)
    assert (effect.more, effect.fewer) == (10, 0)
    factories.subscription("t", event_type=orders, filter="")
    (gone,) = effects_of(plan(document(subscriptions=[]), prune=True)).effects
    assert (gone.more, gone.fewer) == (0, 13)


def test_what_decides_nothing_is_not_tried(abc: Subscription) -> None:
    assert effects(timeout_seconds=9) == []


def test_a_spelling_has_no_effect(abc: Subscription) -> None:
    (effect,) = effects(filter=f" {CHEAP} ")
    assert str(effect).endswith("no delivery more or fewer")


def test_what_goes_to_one_destination_is_left_out(abc: Subscription, orders: EventType) -> None:
    factories.message(b'{"price": 1}', event_type=orders, destination="abc")
    (effect,) = effects(status="INACTIVE")
    assert effect.fewer == 10


def test_the_database_says_what_publishing_says(abc: Subscription) -> None:
    (effect,) = effects(filter="$$->'Body'->'price' in (2, 4)")
    kept = [
        price
        for price in range(12)
        if find_mismatch("", "$$->'Body'->'price' in (2, 4)", seen({}, b'{"price": %d}' % price))
        is None
    ]
    assert effect.fewer == 10 - len(kept)
    assert public_id(effect.example_of_fewer or 0) in str(effect)
