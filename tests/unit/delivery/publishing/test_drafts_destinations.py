"""Delivered messages: a message for one destination reaches no other."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from delivery.calls.sync import exchange_message
from delivery.models import Delivery, IdempotencyKey, JournalEntry, JournalKind, Message
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.explain import explain_message
from delivery.publishing.publish import publish
from subscriptions.models import (
    EventType,
    Kind,
    MatchMode,
    Mode,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from tests.support import factories

NOBODYS = pytest.mark.parametrize(
    "name", ["nobody", "crm/nothing", "crm/", "/orders", "", "crm/orders/x", "c rm", "CRM"]
)


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type()


@pytest.fixture
def orders(event_type: EventType) -> Subscription:
    return factories.subscription(
        "orders", subscriber=factories.subscriber("crm"), event_type=event_type
    )


def deliver(event_type: EventType, to: str, **headers: str) -> Message:
    sent = Draft(event_type=event_type, headers={"destination": to, **headers}, body=b"{}")
    (accepted,) = publish(factories.publisher(), [sent])
    return Message.objects.get(pk=accepted.message_id)


def receivers(message: Message) -> set[Subscription]:
    return {delivery.subscription for delivery in Delivery.objects.filter(message=message)}


def test_a_message_to_a_subscriber_reaches_only_its_matching_subscriptions(
    orders: Subscription,
) -> None:
    crm, event_type = orders.subscriber, orders.event_type
    also = factories.subscription(subscriber=crm, event_type=event_type, mode=Mode.PULL)
    factories.subscription(subscriber=crm, event_type=event_type, filter="$$->'Body'->>'n' = '2'")
    factories.subscription(subscriber=crm)
    factories.subscription(event_type=event_type)
    message = deliver(event_type, "crm")
    assert receivers(message) == {orders, also}
    assert message.destination == "crm"


def test_a_message_to_one_subscription_reaches_no_other(orders: Subscription) -> None:
    factories.subscription(subscriber=orders.subscriber, event_type=orders.event_type)
    factories.subscription("orders", event_type=orders.event_type)
    message = deliver(orders.event_type, "crm/orders")
    assert receivers(message) == {orders}
    assert message.destination == "crm/orders"


def test_the_second_of_a_first_subscriber_can_be_named(orders: Subscription) -> None:
    crm = orders.subscriber
    crm.match_mode = MatchMode.FIRST
    crm.save()
    second = factories.subscription(
        "second", subscriber=crm, event_type=orders.event_type, position=2
    )
    assert receivers(deliver(orders.event_type, "crm")) == {orders}
    assert receivers(deliver(orders.event_type, "crm/second")) == {second}


@NOBODYS
def test_an_unknown_destination_is_404_and_stores_nothing(orders: Subscription, name: str) -> None:
    with pytest.raises(PublishRefusedError) as refused:
        deliver(orders.event_type, name)
    assert (refused.value.status, refused.value.code) == (404, "no-such-destination")
    assert not Message.objects.exists()


def test_a_subscription_to_another_event_type_is_unknown(orders: Subscription) -> None:
    with pytest.raises(PublishRefusedError, match="There is no subscription"):
        deliver(factories.event_type(), "crm/orders")


def test_a_message_that_its_destination_does_not_match_is_stored_with_a_journal_entry(
    orders: Subscription,
) -> None:
    orders.status = SubscriptionStatus.INACTIVE
    orders.save()
    message = deliver(orders.event_type, "crm/orders")
    assert not receivers(message)
    entry = JournalEntry.objects.get(kind=JournalKind.UNMATCHED, message_id=message.pk)
    assert entry.text == (
        f"msg_{message.pk}, delivered to crm/orders, did not match it: it is INACTIVE."
    )
    assert entry.subscription_id == orders.pk


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"filter": "$$->'Body'->>'a' = 'b'"}, "its filter is not true of the message"),
        ({"header_filter_string": "p"}, "the message has no FILTER_STRING header"),
    ],
)
def test_the_entry_says_why_the_named_subscription_did_not_match(
    orders: Subscription, fields: dict[str, str], reason: str
) -> None:
    for name, value in fields.items():
        setattr(orders, name, value)
    orders.save()
    message = deliver(orders.event_type, "crm/orders")
    assert not receivers(message)
    entry = JournalEntry.objects.get(kind=JournalKind.UNMATCHED, message_id=message.pk)
    assert entry.text.endswith(f", did not match it: {reason}.")


def test_the_value_of_a_header_is_not_in_the_journal(orders: Subscription) -> None:
    orders.header_filter_string = "p"
    orders.save()
    message = deliver(orders.event_type, "crm/orders", **{"filter-string": "secret"})
    entry = JournalEntry.objects.get(kind=JournalKind.UNMATCHED, message_id=message.pk)
    assert "it has another FILTER_STRING header" in entry.text
    assert "secret" not in entry.text


def test_without_a_match_at_a_whole_subscriber_no_subscription_is_named(
    orders: Subscription,
) -> None:
    orders.status = SubscriptionStatus.INACTIVE
    orders.save()
    message = deliver(orders.event_type, "crm")
    entry = JournalEntry.objects.get(kind=JournalKind.UNMATCHED, message_id=message.pk)
    assert entry.text.endswith("delivered to crm, matched no subscription there.")
    assert entry.subscription_id is None


def test_only_the_destinations_endpoints_of_a_queue_are_tried(db: None) -> None:
    event_type = factories.event_type(kind=Kind.QUEUE)
    crm = factories.subscriber("crm")
    subscription = factories.subscription(subscriber=crm, event_type=event_type)
    factories.subscription(event_type=event_type)
    assert receivers(deliver(event_type, "crm")) == {subscription}


def test_a_sync_message_calls_its_destination(transactional_db: None, settings: Any) -> None:
    event_type = factories.event_type(kind=Kind.SYNC)
    factories.subscription(event_type=event_type, filter="$$->'Body'->>'n' is null", position=1)
    crm = factories.subscription(
        event_type=event_type, subscriber=factories.subscriber("crm"), position=2
    )
    sent = Draft(event_type=event_type, headers={"destination": "crm"}, body=b"{}")
    assert exchange_message(factories.publisher(), sent).subscription == crm


def test_the_entry_of_a_sync_message_says_why_the_named_subscription_did_not_match(
    transactional_db: None,
) -> None:
    event_type = factories.event_type(kind=Kind.SYNC)
    crm = factories.subscription(
        "orders",
        event_type=event_type,
        subscriber=factories.subscriber("crm"),
        filter="$$->'Body'->>'n' = '2'",
    )
    sent = Draft(event_type=event_type, headers={"destination": "crm/orders"}, body=b"{}")
    assert exchange_message(factories.publisher(), sent).subscription is None
    entry = JournalEntry.objects.get(kind=JournalKind.UNMATCHED)
    assert entry.text.endswith(
        "delivered to crm/orders, did not match it: its filter is not true of the message."
    )
    assert entry.subscription_id == crm.pk


def test_each_message_of_a_batch_goes_to_its_own_destination(orders: Subscription) -> None:
    other = factories.subscription(event_type=orders.event_type)
    wanted = {"crm": {orders}, other.subscriber.name: {other}, "": {orders, other}}
    drafts = [
        Draft(event_type=orders.event_type, headers={"destination": to} if to else {}, body=b"{}")
        for to in wanted
    ]
    accepted = publish(factories.publisher(), drafts)
    found = [receivers(Message.objects.get(pk=published.message_id)) for published in accepted]
    assert found == list(wanted.values())


def test_explain_names_subscriptions_outside_the_destination(orders: Subscription) -> None:
    other = factories.subscription(event_type=orders.event_type)
    message = deliver(orders.event_type, "crm/orders")
    said = {explanation.subscription: explanation for explanation in explain_message(message)}
    assert said[orders].qualifies
    assert (said[other].qualifies, "another destination" in str(said[other].reason)) == (
        False,
        True,
    )


def test_explain_of_a_deleted_destination_names_nobody(orders: Subscription) -> None:
    message = deliver(orders.event_type, "crm/orders")
    Subscription.objects.filter(pk=orders.pk).update(name="renamed")
    assert not any(explanation.qualifies for explanation in explain_message(message))


def test_an_idempotency_key_is_valid_for_one_destination(orders: Subscription) -> None:
    other = factories.subscription(event_type=orders.event_type)
    publisher = factories.publisher()
    first = publish(publisher, [keyed(orders.event_type, "crm")])
    with pytest.raises(PublishRefusedError) as refused:
        publish(publisher, [keyed(orders.event_type, other.subscriber.name)])
    assert refused.value.status == 409
    assert publish(publisher, [keyed(orders.event_type, "crm")]) == first


def test_a_repetition_gets_its_answer_also_when_the_destination_is_gone(
    orders: Subscription,
) -> None:
    publisher = factories.publisher()
    first = publish(publisher, [keyed(orders.event_type, "crm")])
    Subscriber.objects.filter(name="crm").update(name="renamed")
    assert publish(publisher, [keyed(orders.event_type, "crm")]) == first
    with pytest.raises(PublishRefusedError) as refused:
        publish(factories.publisher(), [keyed(orders.event_type, "crm")])
    assert refused.value.code == "no-such-destination"
    assert not IdempotencyKey.objects.exclude(publisher=publisher).exists()


def test_a_destination_is_looked_up_once_for_a_batch(
    orders: Subscription, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    drafts = [
        Draft(event_type=orders.event_type, headers={"destination": "crm/orders"}, body=b"{}")
    ] * 50
    publisher = factories.publisher()
    with django_assert_max_num_queries(6):
        publish(publisher, drafts)


def keyed(event_type: EventType, to: str) -> Draft:
    return Draft(
        event_type=event_type, headers={"destination": to}, body=b"{}", idempotency_key="k"
    )


def test_an_application_stands_for_all_of_its_subscribers(event_type: EventType) -> None:
    mine = [
        factories.subscription(
            subscriber=factories.subscriber(name, application="is.example"), event_type=event_type
        )
        for name in ("orders.handle", "orders.audit")
    ]
    factories.subscription(subscriber=mine[0].subscriber, event_type=event_type, filter="1 = 2")
    factories.subscription(subscriber=factories.subscriber("crm"), event_type=event_type)
    other = factories.subscriber("other", application="another.example")
    factories.subscription(subscriber=other, event_type=event_type)
    message = deliver(event_type, "is.example")
    assert receivers(message) == set(mine)
    assert message.destination == "is.example"
    assert {
        explanation.subscription
        for explanation in explain_message(message)
        if explanation.qualifies
    } == set(mine)


def test_a_subscriber_comes_before_an_application_of_its_name(orders: Subscription) -> None:
    factories.subscription(
        subscriber=factories.subscriber("other", application="crm"), event_type=orders.event_type
    )
    assert receivers(deliver(orders.event_type, "crm")) == {orders}
    with pytest.raises(PublishRefusedError, match="no subscription"):
        deliver(orders.event_type, "crm/other")


def test_an_application_has_no_subscriptions_by_name(orders: Subscription) -> None:
    Subscriber.objects.filter(name="crm").update(application="shop")
    with pytest.raises(PublishRefusedError, match="There is no subscription 'shop/orders'"):
        deliver(orders.event_type, "shop/orders")
